"""A rod of PyElastica, simulated and timed in a process of its own.

A script, not a module of the package: softcr sets options of numba for its own kernels, which would
slow PyElastica down. It reads a pickled order from stdin (see `pyelastica.simulate`) and writes one
result for each run to stdout. The rod is made of PyElastica's documented pieces: CosseratRod,
OneEndFixedBC, GravityForces, AnalyticalLinearDamper with `uniform_damping_constant`,
PositionVerlet.
"""

import pickle
import sys
import time
from typing import Any

import elastica
import numpy as np


class _Simulator(
    elastica.BaseSystemCollection, elastica.Constraints, elastica.Forcing, elastica.Damping
):
    pass


def main() -> None:
    """Do all runs asked for, the first one twice: it compiles."""
    order = pickle.load(sys.stdin.buffer)
    rod, strains, period = order["rod"], order["intrinsic_strains"], order["period"]
    simulate(rod, strains[:1], period, *order["runs"][0])
    pickle.dump([simulate(rod, strains, period, *run) for run in order["runs"]], sys.stdout.buffer)


def simulate(
    rod: dict[str, Any], intrinsic_strains: np.ndarray, period: float, elements: int,
    steps_per_period: int,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """Tips (T, 3) [m] after each period, from rest, NaN if it diverged; the time it took [s].

    `intrinsic_strains` (T, K, 6) are those of each segment without load, shears and bendings first
    in x, linear before angular, each held for a period [s].
    """
    step = period / steps_per_period
    simulator = _Simulator()
    body = _make_rod(rod, elements)
    simulator.append(body)
    simulator.constrain(body).using(
        elastica.OneEndFixedBC, constrained_position_idx=(0,), constrained_director_idx=(0,)
    )
    simulator.add_forcing_to(body).using(elastica.GravityForces, acc_gravity=rod["gravity"])
    simulator.dampen(body).using(
        elastica.AnalyticalLinearDamper,
        uniform_damping_constant=rod["damping_constant"],
        time_step=step,
    )
    simulator.finalize()
    stepper = elastica.PositionVerlet()
    owners = _owners(rod, elements)
    share = _joint_shares(elements)
    tips, now = np.empty((len(intrinsic_strains), 3)), np.float64(0.0)
    begin = time.perf_counter()
    with np.errstate(all="ignore"):
        for row, strain in enumerate(intrinsic_strains):
            along = strain[owners].T
            body.rest_sigma[:] = along[:3]
            body.rest_kappa[:] = 0.5 * (along[3:, 1:] + along[3:, :-1]) * share
            for _ in range(steps_per_period):
                now = stepper.step(simulator, now, step)
            tips[row] = body.position_collection[:, -1]
    seconds = time.perf_counter() - begin
    return tips if np.isfinite(tips).all() else np.full_like(tips, np.nan), seconds


def _make_rod(rod: dict[str, Any], elements: int) -> elastica.CosseratRod:
    """A straight upright rod with the masses, inertias and stiffnesses given."""
    segments, owners = rod["segments"], _owners(rod, elements)

    def along(name: str) -> np.ndarray:
        return np.array([each[name] for each in segments], float)[owners]

    area, length = along("area"), sum(each["length"] for each in segments)
    piece = length / elements
    edges = np.linspace(0.0, length, elements + 1)
    tip_length = rod["tip_mass_fraction"] * length
    covered = np.clip(edges[1:] - np.maximum(edges[:-1], length - tip_length), 0.0, None)
    density = along("density") + rod["tip_mass"] * covered / tip_length / (area * piece)
    stiffness = along("stiffness").T
    radii: Any = np.sqrt(area / np.pi)  # of each element, though annotated as a number
    body = elastica.CosseratRod.straight_rod(
        elements, np.zeros(3), np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]), length,
        radii, density, youngs_modulus=float(np.mean(stiffness[2] / area)),
    )  # fmt: skip
    # The constructor knows solid circular sections only; masses are right, the rest is set here.
    second_moments = along("second_moment_of_area") * np.array([[1.0], [1.0], [2.0]])
    share = _joint_shares(elements)
    for axis in range(3):
        inertia = density * piece * second_moments[axis]
        body.mass_second_moment_of_inertia[axis, axis] = inertia
        body.inv_mass_second_moment_of_inertia[axis, axis] = 1.0 / inertia
        body.shear_matrix[axis, axis] = stiffness[axis]
        # half of each element beside a joint bends at it, one after the other
        compliance = 1.0 / stiffness[3 + axis]
        body.bend_matrix[axis, axis] = 2.0 / (compliance[1:] + compliance[:-1]) / share
    return body


def _owners(rod: dict[str, Any], elements: int) -> np.ndarray:
    """(elements,) segment of each element."""
    ends = np.cumsum([each["length"] for each in rod["segments"]])
    return np.searchsorted(ends, (np.arange(elements) + 0.5) * ends[-1] / elements)


def _joint_shares(elements: int) -> np.ndarray:
    """(elements - 1,) piece of rod that each joint stands for, in element lengths.

    PyElastica bends a rod at the joints between elements only, so the half elements at both ends
    stay stiff and its error falls with the first power of their length. Letting the outer joints
    bend for them makes it the second power.
    """
    share = np.ones(elements - 1)
    share[0] += 0.5
    share[-1] += 0.5
    return share


if __name__ == "__main__":
    main()
