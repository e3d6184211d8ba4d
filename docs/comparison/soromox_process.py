"""A rod of SoRoMoX, simulated and timed in an environment of its own; asked and answered by JSON.

Each piece of constant strain has the stiffness K and the damping of Kelvin and Voigt that softcr's
rod has, K times relaxation, as canonical matrices; the wrench of the pressures, constant along the
rod, is a generalised force in its strains. SoRoMoX's local x axis is the rod's, and twists have
their angular part first.
"""

import json
import sys
import time
from functools import partial

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
from soromox.systems.components.links import LinkSpec  # noqa: E402
from soromox.systems.pcs import PCS  # noqa: E402

TO_THEIRS = [5, 3, 4, 2, 0, 1]  # (fx fy fz mx my mz) with z along the rod -> (mz mx my fz fx fy)
SOLVERS = {"Tsit5": diffrax.Tsit5, "Kvaerno3": diffrax.Kvaerno3}


def main() -> None:
    """Do all runs asked for, each one twice: the first compiles."""
    order = json.load(sys.stdin)
    for run in order["runs"]:
        print(json.dumps(simulate(order["rod"], order, run)), flush=True)


def simulate(rod: dict, order: dict, run: dict) -> dict:
    """Tips [m] after each period, none where it diverged; the processor time they took [s]."""
    pieces, period = run["pieces"], order["period"]
    robot = made(rod, pieces)
    push = np.array(order["wrenches"])[:, TO_THEIRS] * rod["length"] / pieces
    forces = jnp.tile(jnp.asarray(push), (1, pieces))  # (T, 6 pieces)
    term = diffrax.ODETerm(
        lambda t, y, force: robot.forward_dynamics(t, y, (jnp.zeros(6 * pieces), force))
    )
    solver = SOLVERS[run["solver"]]()
    fixed = run["steps_per_period"]
    control = (
        diffrax.ConstantStepSize()
        if fixed
        else diffrax.PIDController(rtol=run["tolerance"], atol=1e-2 * run["tolerance"])
    )
    first = period / fixed if fixed else period / 50

    @jax.jit
    def motion(y, forces):
        def advance(y, force):
            done = diffrax.diffeqsolve(
                term, solver, 0.0, period, first, y, force, stepsize_controller=control,
                max_steps=20_000, throw=False, adjoint=diffrax.ForwardMode(),
            )  # fmt: skip
            y = done.ys[-1]
            tip = robot.forward_kinematics(y[: 6 * pieces], rod["length"])[:3, 3]
            return y, jnp.stack([tip[1], tip[2], tip[0]])

        return jax.lax.scan(advance, y, forces)[1]

    start = jnp.zeros(12 * pieces)
    seconds = []
    for _ in range(2):
        begin = time.process_time()
        tips = np.asarray(motion(start, forces).block_until_ready())
        seconds.append(time.process_time() - begin)
    found = tips.tolist() if np.isfinite(tips).all() and np.abs(tips).max() < 1.0 else None
    return {"tips": found, "seconds": seconds[1], "compiling": seconds[0] - seconds[1]}


def made(rod: dict, pieces: int) -> PCS:
    """The robot, upright: its x axis against gravity."""
    length = rod["length"] / pieces
    stiffness = np.diag(np.array(rod["stiffness"])[TO_THEIRS]) * length
    damping = np.diag((np.array(rod["stiffness"]) * rod["relaxation"])[TO_THEIRS]) * length
    link = partial(
        LinkSpec.circular,
        length=length,
        density=rod["density"],
        radius=rod["radius"],
        reference_strain=[0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        stiffness=jnp.asarray(stiffness),
        damping=jnp.asarray(damping),
    )
    return PCS.from_links(
        [link() for _ in range(pieces)],
        gravity=jnp.array([-rod["gravity"], 0.0, 0.0]),
        base_pose=jnp.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
    )


if __name__ == "__main__":
    main()
