"""An arm of SoRoMoX, simulated and timed in a process of its own.

A script, not a module of the package: SoRoMoX brings JAX, which softcr does not need, so it may
live in another environment. It reads a pickled order from stdin (see `work_precision`) and writes
one result for each run to stdout. The arm is made of SoRoMoX's documented pieces: piecewise
constant strain (PCS) or geometric variable strain (GVS) links of a round isotropic material with
its material damping, tendons as threadlike actuators, integrated by diffrax with a step control
that stops where tensions jump.
"""

import pickle
import sys
import time
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import diffrax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from soromox.actuation.threadlike import ThreadlikeActuator, ThreadlikeRouting  # noqa: E402
from soromox.systems.components import LinkSpec  # noqa: E402
from soromox.systems.pcs import PCS  # noqa: E402
from soromox.systems.pcs.structures import PCSStructure  # noqa: E402

# stiffness limits the steps, not the tolerance; an implicit Kvaerno3 was slower from 2 links on
TOLERANCE = 1e-3
MOST_STEPS = 400_000
GAUSS_POINTS = 3  # on each link
# SoRoMoX's links run along x: its y, z, x are the arm's x, y, z
TO_THEIRS = np.array([2, 0, 1])
FROM_THEIRS = np.array([1, 2, 0])


def main() -> None:
    """Do all runs asked for."""
    order = pickle.load(sys.stdin.buffer)
    pickle.dump([simulate(order["arm"], links) for links in order["runs"]], sys.stdout.buffer)


def simulate(arm: dict[str, Any], links: int) -> tuple[np.ndarray, float]:
    """Tips (T, 3) [m] after each period, from rest, NaN where it diverged; the time it took [s].

    Args:
        arm: see `arms.Arm.order`.
        links: constant strain links, shared by the segments in proportion to their lengths.
    """
    robot = _make_arm(arm, links)
    period, tensions = arm["period"], jnp.asarray(arm["tensions"])
    ends = period * jnp.arange(1, len(tensions) + 1)
    last = len(tensions) - 1

    def rates(now: Any, y: Any, _: Any) -> Any:
        row = jnp.clip(jnp.floor(now / period + 1e-9).astype(int), 0, last)
        return robot.forward_dynamics(now, y, (tensions[row],) if arm["tendons"] else None)

    control: Any = diffrax.PIDController(rtol=TOLERANCE, atol=0.1 * TOLERANCE)
    if arm["tendons"]:
        control = diffrax.ClipStepSizeController(control, jump_ts=ends[:-1])

    @jax.jit
    def run(state: Any) -> Any:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(rates), diffrax.Tsit5(), 0.0, ends[-1], 0.1 * period, state,
            saveat=diffrax.SaveAt(ts=ends), stepsize_controller=control, max_steps=MOST_STEPS,
            throw=False,
        )  # fmt: skip
        size = robot.num_internal_dofs
        where = jnp.sum(robot.segment_length)
        return jax.vmap(lambda y: robot.forward_kinematics(y[:size], where))(solution.ys)

    rest = jnp.zeros(robot.state_size)
    compiled = run.lower(rest).compile()
    begin = time.perf_counter()
    poses = np.asarray(compiled(rest))
    seconds = time.perf_counter() - begin
    tips = poses[:, :3, 3][:, FROM_THEIRS]
    return tips if np.isfinite(tips).all() else np.full_like(tips, np.nan), seconds


def _make_arm(arm: dict[str, Any], links: int) -> PCS:
    """Solid round links; every strain is free."""
    shares = [_share(segment["length"], arm, links) for segment in arm["segments"]]
    specs = []
    for segment, count in zip(arm["segments"], shares, strict=True):
        young = segment["young"]
        spec = LinkSpec.circular(
            length=segment["length"] / count, radius=0.5 * segment["diameter"],
            density=segment["density"], reference_strain=[0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
            young_modulus=young, shear_modulus=young / 3.0,
            # of an incompressible material: 3 G I and G I are the bending and torsion stiffness
            material_damping_coefficient=segment["relaxation"] * young / 3.0,
        )  # fmt: skip
        specs += [spec] * count
    actuators = None
    if arm["tendons"]:
        offsets = np.array([[each["x"], each["y"], 0.0] for each in arm["tendons"]])
        last = np.cumsum(shares)[[each["last"] for each in arm["tendons"]]] - 1
        routing = ThreadlikeRouting.linear(
            intercept=jnp.asarray(offsets[:, TO_THEIRS]), start_segment_index=0,
            end_segment_index=tuple(int(each) for each in last),
        )  # fmt: skip
        actuators = ThreadlikeActuator.tendons(routing)
    return PCS.from_links(
        specs, gravity=jnp.asarray(np.array(arm["gravity"])[TO_THEIRS]), actuators=actuators,
        structure=PCSStructure(num_gauss_points=GAUSS_POINTS),
        base_pose=jnp.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
    )  # fmt: skip


def _share(length: float, arm: dict[str, Any], links: int) -> int:
    total = sum(segment["length"] for segment in arm["segments"])
    return max(1, round(links * length / total))


if __name__ == "__main__":
    main()
