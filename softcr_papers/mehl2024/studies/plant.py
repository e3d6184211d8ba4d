"""The Cosserat rod that the filters are to see, and its excitation.

Mehl et al. give their rod only by the fitted Table I, row Sim. This one has that row's numbers on
the cross section and chambers of licher2025: mass spread along the rod, nothing at the tip,
stiffness and damping such that a rod of constant strain has the row's. It is upright on the sensor.

Each chamber breathes smoothly between 0 and one amplitude for all, p = A (1 - cos(2 pi f t)) / 2,
from the static straight pose on. The frequencies differ, so that every part of 10 s begins in
another pose and velocity. The amplitude is what brings the tip as far from the straight pose as in
Table II (57.4 mm); with frequencies near 0.7 Hz its speed then comes near Table II's 275.7 mm/s.
"""

import numpy as np

from softcr_models import CosseratRod, Robot, load_robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod.state import RodState
from softcr_papers.constant_curvature.kinematics import coordinates_of_tip
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel

DT = 0.005
INTERVALS = 10
DEFLECTION = 0.0574
FREQUENCIES = np.array([0.61, 0.73, 0.84])
FREQUENCY_SPREAD = 0.1
FORCE_NOISE, MOMENT_NOISE = 1e-3, 1e-4
"""Standard deviations of the sensor's white noise, R of Mehl et al. [N], [N m]."""

# Velocities are then within 0.3 % of the slopes of the tips; two sub-steps leave 3 %.
_SUBSTEPS = 10


def table_one_robot() -> Robot:
    """licher2025 with the numbers of Mehl et al., Table I, Sim."""
    length, radius, mass = 0.130, 0.021, 0.16
    bending, bending_damping, elongation, elongation_damping = 505.0, 0.15, 1128.0, 6.23
    body = load_robot("licher2025").replace(
        name="mehl2024",
        description="Mehl et al., Table I, Sim, on the section of licher2025",
        length=length,
        outer_diameter=2.0 * radius,
        tip_mass=0.0,
        bending_compliance=1.0 / (bending * length * radius**2),
        dilatation_compliance=1.0 / (elongation * length),
    )
    shear, _, _, _, _, torsion = body.relaxation_times
    bend, stretch = bending_damping / bending, elongation_damping / elongation
    return body.replace(
        density=mass / (body.cross_section_area * length),
        relaxation_times=(shear, shear, stretch, bend, bend, torsion),
    )


def excitation(times: np.ndarray, amplitude: float, frequencies: np.ndarray) -> np.ndarray:
    """(T, chambers) gauge pressures [Pa] between 0 and the amplitude."""
    turns = np.multiply.outer(times, frequencies)
    return 0.5 * amplitude * (1.0 - np.cos(2.0 * np.pi * turns))


def sensed_run(
    robot: Robot, model: ConstantCurvatureModel, seconds: float, seed: int
) -> dict[str, np.ndarray]:
    """Simulates the rod; the seed draws frequencies and sensor noise.

    Returns:
        `motion_of`, and at its T samples every DT seconds: times (T,) [s]; pressures (T, 3) [Pa];
        wrenches (T, 6) force [N], then moment [N m] on the sensor, noise included.
    """
    random = np.random.default_rng(seed)
    count = len(robot.chambers)
    spread = random.uniform(1.0 - FREQUENCY_SPREAD, 1.0 + FREQUENCY_SPREAD, count)
    frequencies = np.resize(FREQUENCIES, count) * spread
    rod = CosseratRod(robot, INTERVALS)
    times = DT * np.arange(round(seconds / DT) + 1)
    pressures = excitation(times, _amplitude(rod, frequencies, times), frequencies)
    states = _simulated(rod, pressures)
    samples = zip(states, pressures, strict=True)
    wrenches = np.array([rod.base_wrench(*sample) for sample in samples])
    wrenches += random.normal(size=wrenches.shape) * np.repeat([FORCE_NOISE, MOMENT_NOISE], 3)
    told = {"times": times, "pressures": pressures, "wrenches": wrenches}
    return told | motion_of(rod, states, model)


def motion_of(
    rod: CosseratRod, states: np.ndarray, model: ConstantCurvatureModel
) -> dict[str, np.ndarray]:
    """How the end of a rod with states (T, nx) moves.

    Returns:
        tips, velocities (T, 3) end of the rod in the frame of its base [m], [m/s]; coordinates,
        rates (T, 3) of the model's arc with this tip [m], [m/s].
    """
    poses = np.array([rod.backbone(state, 2)[-1] for state in states])
    in_node_frame = RodState(states).velocities[:, -1, :3]
    velocities = np.einsum("tij,tj->ti", poses[:, :3, :3], in_node_frame)
    tips = poses[:, :3, 3] - [0.0, 0.0, rod.base_height]
    coordinates = coordinates_of_tip(tips, model.rest_length, model.radius)
    rates = model.rate_of_tip(coordinates, velocities)
    return {"tips": tips, "velocities": velocities, "coordinates": coordinates, "rates": rates}


def deflection(tips: np.ndarray, rest_length: float) -> float:
    """The largest distance [m] of tips (T, 3) from that of the straight, unloaded pose."""
    return float(np.linalg.norm(tips - [0.0, 0.0, rest_length], axis=-1).max())


def _amplitude(rod: CosseratRod, frequencies: np.ndarray, times: np.ndarray) -> float:
    """Amplitude [Pa] for the wanted deflection; found on the first 20 s, to about a percent."""
    times, limits = times[: round(20.0 / DT)], rod.robot.pressure_limits
    amplitude = 0.3 * limits.maximum
    for _ in range(4):
        states = _simulated(rod, excitation(times, amplitude, frequencies))
        ends = np.array([rod.backbone(state, 2)[-1, :3, 3] for state in states])
        tips = ends - [0.0, 0.0, rod.base_height]
        amplitude *= DEFLECTION / deflection(tips, rod.robot.length)
    return float(min(amplitude, limits.maximum))


def _simulated(rod: CosseratRod, pressures: np.ndarray) -> np.ndarray:
    """(T, nx) states from the steady state on; pressures are linear in time between the samples.

    Held pressures would not do: the rod's relaxation takes about DT, so velocities and wrenches at
    the end of a held step are 10 % off those of a smooth excitation.
    """
    prediction = RodPrediction(rod, _SUBSTEPS, single_precision=False)
    start, parameters = rod.equilibrium(pressures[0]), rod.nominal_parameters
    states = prediction.rollout(start, pressures[None], parameters, DT)[0]
    return np.vstack([start, states])
