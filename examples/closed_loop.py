"""A closed loop on virtual time: the system of `softcr up simulation` in this process, without ROS.

    python examples/closed_loop.py

It runs faster than real time, and for a seed it gives the same bits as the nodes in lock-step.
"""

from pathlib import Path

import numpy as np

from softcr_runtime.blocks.virtual import VirtualExecutor
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system


def tip_errors(**options: str) -> np.ndarray:
    """(T,) distance of the true tip from the reference at each tick [m].

    Args:
        options: of `softcr up simulation`, by name and as texts; a dot in a name is written `__`.
    """
    texts = {"mode": "lockstep", "duration": "4"}
    texts |= {name.replace("__", "."): text for name, text in options.items()}
    tips, wanted = {}, {}

    def observe(part, output):
        if output.topic == "simulation/truth/tip/pose":
            tips[output.stamp] = output.value.position  # (3,) [m]
        elif output.topic == "reference/rod":
            wanted[output.stamp] = output.value.tip_positions[0]  # where it should be now

    executor = VirtualExecutor(
        simulation_system(SimulationOptions.of_options(texts), Path("unused")), observe
    )
    executor.run()
    if executor.complaints:
        raise SystemExit("\n".join(executor.complaints))
    stamps = sorted(tips.keys() & wanted.keys())
    return np.array([np.linalg.norm(tips[stamp] - wanted[stamp]) for stamp in stamps])


if __name__ == "__main__":
    for controller in ("rod_mpc", "examples/joint_pid.py:JointPid"):
        errors = tip_errors(controller=controller, reference="setpoint")
        mean, last = 1e3 * errors.mean(), 1e3 * errors[-1]
        print(f"{controller}: {mean:.2f} mm on average, {last:.2f} mm at the end")
