"""The files that one sample passes on the bench, from a camera to a valve, in order."""

from collections.abc import Callable

from generate.markdown import code, table

FILES = {
    "softcr_hardware/optitrack/client.py": "receives a frame of the cameras from the network",
    "softcr_hardware/optitrack/session.py": "decodes it, without a socket and without a clock",
    "softcr_hardware/optitrack/tracking.py": "decides whether the pose of the tip is believed",
    "softcr_hardware/nodes/optitrack.py": "publishes it in the base frame",
    "softcr_runtime/ros/block_node.py": "receives poses and pressures, and runs the next three",
    "softcr_runtime/blocks/join.py": "interpolates them at the next multiple of 1/70 s",
    "softcr_estimation/estimator.py": "estimates state, parameters and tip with its filter",
    "softcr_estimation/model_estimator.py": "is this filter: it predicts with the model, corrects",
    "softcr_control/controller.py": "joins the estimate with the reference, calls the controller",
    "softcr_control/predictive/gauss_newton.py": "optimises the commands of the next periods",
    "softcr_control/command_limits.py": "limits their range and rate; then they are published",
    "softcr_hardware/nodes/valves.py": "passes the packet of commands to the fast process",
    "softcr_hardware/safety/setpoint.py": "follows what is due, as far as safety allows",
    "softcr_hardware/ethercat/pressure_loop.py": "computes the opening of each valve, 1000 Hz",
    "softcr_hardware/ethercat/bus.py": "sends the voltages to the terminals of the valves",
}
"""File -> what it does with the sample."""


def pages() -> dict[str, Callable[[], str]]:
    """One table."""
    return {"sample_path.md": _path}


def _path() -> str:
    rows = ([str(i), code(name), what] for i, (name, what) in enumerate(FILES.items(), 1))
    return table(["", "file", "what it does"], rows) + "\n"
