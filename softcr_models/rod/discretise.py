"""A robot's constants on a grid of collocation intervals."""

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.errors import UserError
from softcr_models.robots.medium import Medium
from softcr_models.robots.robot import BENDING, Robot
from softcr_models.rod.packing import Body
from softcr_models.rod.parameters import nominal_bending
from softcr_models.rod.section import (
    MAX_INTERVALS,
    MAX_NODES,
    MAX_TENDONS,
    Fittings,
    Grid,
    NodeLoads,
)


def share_intervals(robot: Robot, intervals: int) -> list[int]:
    """How many intervals each segment gets: `intervals` of each on average, at least 1.

    Shares are the segments' own numbers of intervals where they have them, else by length: equal
    intervals make the equations least stiff.

    Raises:
        UserError: more than a rod can have.
    """
    segments = robot.segments
    total = intervals * len(segments)
    most = min(MAX_INTERVALS, MAX_NODES - len(segments)) // len(segments)
    if not 1 <= intervals <= most:
        each = "" if len(segments) == 1 else f" of each of {len(segments)} segments"
        raise UserError(f"intervals: {intervals} is not allowed: 1 to {most}{each}")
    given = [each for each in segments if each.intervals]
    density = sum(e.intervals or 0 for e in given) / sum(e.length for e in given) if given else 1.0
    weights = np.array([each.intervals or each.length * density for each in segments])
    wanted = total * weights / weights.sum()
    counts = np.maximum(1, np.floor(wanted)).astype(int)
    while counts.sum() < total:
        counts[np.argmax(wanted - counts)] += 1
    while counts.sum() > total:
        counts[np.argmax(np.where(counts > 1, counts - wanted, -np.inf))] -= 1
    return counts.tolist()


def grid_of(robot: Robot, counts: list[int], payloads: int, stiffenings: int) -> Grid:
    """The grid of a robot whose segments have these numbers of intervals; payloads and stiffenings
    are of `parameters.rod_parameters`."""
    base_to_world = Rotation.from_euler("xyz", robot.base_orientation).as_matrix()
    inertia = robot.segment_second_moments / robot.segment_areas
    lengths = np.array([each.length for each in robot.segments])
    interval_length = lengths / counts
    first_row = np.concatenate(([0], np.cumsum(np.array(counts) + 1)))
    return Grid(
        segments=len(counts),
        first_row=first_row,
        interval_length=interval_length,
        gravity=robot.gravity * base_to_world[2],
        gravity_subintervals=robot.gravity_subintervals,
        strain_point=robot.gravity_strain_point,
        bending_inertia=inertia,
        torsion_inertia=2.0 * inertia,
        payload_row=int(first_row[-1]) - 2 if payloads else -1,
        payload_lever=0.5 * float(interval_length[-1]) + robot.tip_cap_length,
        stiffens=stiffenings,
    )


def body_of(
    robot: Robot,
    grid: Grid,
    bendings: int,
    forces: int,
    payloads: int,
    stiffenings: int,
    *,
    by_rows: bool,
) -> Body:
    """What the segments are made of and how inputs act on them.

    Args:
        robot, grid: whose.
        bendings, forces, payloads, stiffenings: of `parameters.rod_parameters`.
        by_rows: whether actuation is given for each row, as a rod with fittings needs it.
    """
    compliances = robot.segment_compliances
    nominal = [nominal_bending(robot, a) for a in range(bendings)]
    actuation = robot.segment_actuation
    if by_rows:
        actuation = actuation_of_rows(robot, grid)
        followed = robot.tendon_inputs[_followed(robot)]
        actuation[:, :, followed] = 0.0  # their wrench follows from the strain
    return Body(
        compliance=compliances * (1.0 - BENDING),
        bending_share=compliances * BENDING / np.array(nominal)[:, None],
        bendings=bendings,
        forces=forces,
        payloads=payloads,
        stiffenings=stiffenings,
        relaxation=np.array(robot.segment_relaxation_times),
        line_density=np.array([each.density for each in robot.segments]) * robot.segment_areas,
        tip_share=_tip_share(robot, grid),
        actuation=np.ascontiguousarray(actuation),
        pulls=np.array([int(each.type == "tendon") for each in robot.actuators]),
        base_height=base_height(robot),
        tip_cap_length=robot.tip_cap_length,
    )


def base_height(robot: Robot) -> float:
    """From the force-torque sensor's origin to the rod's base [m]."""
    return robot.sensor_to_base_cap + robot.base_cap_length


def needs_fittings(robot: Robot) -> bool:
    """Whether a robot has more than soft segments and constant actuation."""
    connected = any(each.connector is not None for each in robot.segments)
    beside = robot.payload is not None or robot.medium is not None
    followed = bool(_followed(robot).any())
    varying = followed or robot.has_varying_actuation
    return connected or beside or varying or robot.neo_hookean != 0.0


def _followed(robot: Robot) -> np.ndarray:
    """(tendons,) whether a tendon's wrench follows from the strain: that of a motor, and every one
    of the exact model."""
    return (robot.tendon_springs[:, 1] > 0.0) | (robot.tendon_model == "exact")


def fittings_of(robot: Robot, grid: Grid) -> Fittings:
    """Connectors, payload, medium, and tendons that are elastic or of the exact model."""
    count = grid.segments
    adjoint = np.tile(np.eye(6), (count, 1, 1))
    translation, mass = np.zeros((count, 3)), np.zeros((count, 6, 6))
    for a, segment in enumerate(robot.segments):
        if segment.connector is not None:
            adjoint[a] = _adjoint(segment.connector.rotation_matrix, segment.connector.offset)
            translation[a] = segment.connector.offset
            mass[a] = segment.connector.spatial_inertia
    if robot.payload is not None:
        mass[-1] = robot.payload.spatial_inertia
    followed = _followed(robot)
    inputs = robot.tendon_inputs[followed].astype(np.int64)
    if len(inputs) > MAX_TENDONS:
        raise UserError(
            f"robot {robot.name}: {len(inputs)} tendons that are elastic or of the exact model: at "
            f"most {MAX_TENDONS}"
        )
    offsets = np.zeros((grid.first_row[-1], len(inputs), 2, 3))
    for a, rows in _rows_of_segments(grid):
        offsets[rows] = robot.tendon_offsets(a, _arc_lengths(robot, grid, a))[:, followed]
    exact = robot.tendon_model == "exact" and len(inputs) > 0
    return Fittings(
        adjoint=adjoint,
        translation=translation,
        mass=mass,
        tendon_offsets=offsets,
        tendon_reaches=robot.tendon_reaches[followed].astype(np.int64),
        tendon_inputs=inputs,
        springs=np.ascontiguousarray(robot.tendon_springs[followed]) if robot.motors else None,
        exact=int(exact),
        hyperelastic=1 if grid.stiffens > 1 else None,
        varying=int(len(inputs) > 0 or robot.has_varying_actuation or grid.stiffens > 1),
        **_medium_of(robot),
        tip_lever=np.array([0.0, 0.0, robot.tip_cap_length]),
    )


def _medium_of(robot: Robot) -> dict[str, Any]:
    """Fields of `Fittings` about the fluid around a robot; zeros where there is none."""
    count, medium = len(robot.segments), robot.medium
    if medium is None:
        medium = Medium(density=1.0)
        displaced = np.zeros(count)
    else:
        displaced = medium.density * np.array([each.annulus for each in robot.segments])
    diameters = np.array([each.outer_diameter for each in robot.segments])
    pressed = 0.5 * medium.density * diameters  # force per length at 1 m/s and a coefficient of 1
    return {
        "drag": np.tile(medium.linear_drag, (count, 1)),
        "displaced": displaced,
        "cross_flow": medium.normal_drag * pressed,
        "along_flow": np.pi * medium.tangential_drag * pressed,
        "flow": np.array(medium.flow),
        "in_fluid": int(robot.medium is not None),
        "moving_fluid": int(medium.has_quadratic_drag),
        "flow_smoothing": 1e-3,
    }


def no_loads(grid: Grid, forces: int) -> NodeLoads:
    """Loads of a rod that has none but, with 3 `forces`, an estimated one at its tip."""
    rows = int(grid.first_row[-1])
    return NodeLoads(
        np.zeros((rows, 3)), np.zeros((rows, 6)), np.zeros(3), int(forces > 0), int(forces > 0)
    )


def _rows_of_segments(grid: Grid) -> list[tuple[int, slice]]:
    edges = grid.first_row.tolist()
    return [(a, slice(edges[a], edges[a + 1])) for a in range(grid.segments)]


def _arc_lengths(robot: Robot, grid: Grid, a: int) -> np.ndarray:
    """Of the rows of segment a, from the rod's base [m]."""
    nodes = np.arange(grid.first_row[a + 1] - grid.first_row[a])
    return robot.segment_ends[a] + grid.interval_length[a] * nodes


def actuation_of_rows(robot: Robot, grid: Grid) -> np.ndarray:
    """(R, 6, m) wrench per input at each row of the straight rod."""
    return np.concatenate(
        [robot.actuation_at(a, _arc_lengths(robot, grid, a)) for a in range(grid.segments)]
    )


def _tip_share(robot: Robot, grid: Grid) -> np.ndarray:
    """(R,) line density of each interval per kilogram of tip mass, at the end of the last segment
    [1/m]."""
    length = robot.segments[-1].length
    first, end = grid.first_row[-2], grid.first_row[-1] - 1
    edges = np.linspace(0.0, length, end - first + 1)
    tip_length = length * robot.tip_mass_fraction
    covered = np.clip(edges[1:] - np.maximum(edges[:-1], length - tip_length), 0.0, None)
    share = np.zeros(grid.first_row[-1])
    share[first:end] = covered / np.diff(edges) / tip_length
    return share


def _adjoint(rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
    """X = [[Rc^T, -Rc^T t^], [0, Rc^T]]."""
    x, y, z = translation
    hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    back = rotation.T
    return np.block([[back, -back @ hat], [np.zeros((3, 3)), back]])
