"""What a rod is made of and what is fitted to it, as the named tuples that kernels take.

A rod is K segments in series, base to tip. Segment a has n_a intervals and owns n_a + 1 ROWS: its
nodes, the first and the last included. So a boundary between two segments has two rows, one on
either side, which differ in their elastic wrench and, across a connector, in their velocity. There
are R = N + K rows for N intervals; interval i lies between the rows i and i + 1 of one segment, and
carries the number of its lower row.
"""

from typing import Any, NamedTuple

import numpy as np

# sizes of the scratch arrays; a run uses only what its grid needs
MAX_INTERVALS = 64
MAX_SEGMENTS = 8
MAX_TENDONS = 16
MAX_INPUTS = 32
MAX_NODES = 69
MAX_PACKED = 30 * MAX_SEGMENTS + 2 * MAX_NODES + 6


class Section(NamedTuple):
    """What a rod is made of, per lane; reciprocals beside the values because lanes divide slowly.

    Attributes:
        compliance, stiffness: (K, 6) diagonals of C and their inverses.
        relaxation, relaxation_rate: (K, 6) diagonals of D_tau [s] and their inverses.
        line_density, length_per_mass: (R,) mass per length of each interval [kg/m], its inverse.
        payload: (1,) what is carried, per length of the last interval, see `payload` [kg/m].
        stiffening: (2,) change of the bending compliance per squared curvature [m^2], and how much
            of a neo-Hookean material's stiffening it has [-], see `stiffening`.
    """

    compliance: np.ndarray
    stiffness: np.ndarray
    relaxation: np.ndarray
    relaxation_rate: np.ndarray
    line_density: np.ndarray
    length_per_mass: np.ndarray
    payload: np.ndarray
    stiffening: np.ndarray


class Part(NamedTuple):
    """The numbers of one segment out of `Section` and `Grid`, see there.

    Attributes:
        compliance, stiffness, relaxation, relaxation_rate: (6,).
        interval_length, bending_inertia, torsion_inertia: numbers.
        payload_row, payload_lever, stiffens: of the whole rod.
    """

    compliance: np.ndarray
    stiffness: np.ndarray
    relaxation: np.ndarray
    relaxation_rate: np.ndarray
    interval_length: float
    bending_inertia: float
    torsion_inertia: float
    payload_row: int
    payload_lever: float
    stiffens: int


class Grid(NamedTuple):
    """What all lanes of a run share.

    Attributes:
        segments: K.
        first_row: (K + 1,) row at which each segment begins; the last entry is R.
        interval_length: (K,) h [m].
        gravity: (3,) gravity's direction in the base frame, reversed, times g: R_base^T e_z g
            [m/s^2].
        gravity_subintervals: n_sub of Algorithm 1.
        strain_point: where in a sub-interval the strain is taken (0.5 middle, 1 end).
        bending_inertia, torsion_inertia: (K,) rotary inertia per mass, I/A and 2 I/A [m^2].
        payload_row: interval that an estimated payload belongs to, the last one; -1 without.
        payload_lever: from the middle of that interval to the payload [m].
        stiffens: `stiffenings` of Body.
    """

    segments: int
    first_row: np.ndarray
    interval_length: np.ndarray
    gravity: np.ndarray
    gravity_subintervals: int
    strain_point: float
    bending_inertia: np.ndarray
    torsion_inertia: np.ndarray
    payload_row: int
    payload_lever: float
    stiffens: int


class Fittings(NamedTuple):
    """What is fitted to the segments of a rod; the same for all lanes.

    Attributes:
        adjoint: (K, 6, 6) X of the connector after each segment, e+ = X e-; I where there is none.
        translation: (K, 3) of the connector, in the frame before it [m].
        mass: (K, 6, 6) inertia of the rigid body at the end of each segment: connector or payload,
            in the frame of the segment's last node.
        tendon_offsets: (R, T, 2, 3) offset r at each row of each tendon that is elastic or of the
            exact model, and its derivative along the rod [m, -].
        tendon_reaches: (T,) last segment each of them runs through.
        tendon_inputs: (T,) its place among the inputs.
        springs: (T, 4) of those that motors wind, see `tendons`: wound length per input [m/rad],
            stiffness [N/m], 0 for a tendon that is driven by its tension, tension without stretch
            [N], squared width of the transition to slack [N^2]; None without.
        exact: 1 if tendons pull along their tangents on the deformed rod, 0 as on the straight one.
        hyperelastic: 1 if the material is in part a neo-Hookean one, None if not: other kernels,
            see `stiffening`.
        varying: 1 if the actuation differs along a segment: these tendons, routed inputs, or what
            acts like one in a hyperelastic rod.
        drag: (K, 6) drag per length and velocity, body frame [N s/m^2, N s].
        displaced: (K,) mass of displaced fluid per length [kg/m].
        cross_flow, along_flow: (K,) force per length and squared velocity across and along the rod
            [N s^2/m^3].
        flow: (3,) velocity of the fluid, base frame [m/s].
        in_fluid: 1 if any of these acts, or `drag` or `displaced`.
        moving_fluid: 1 if `cross_flow`, `along_flow` or `flow` act.
        flow_smoothing: speed below which drag across the rod becomes linear [m/s].
        tip_lever: (3,) from the last node to where the force at the tip acts, body frame [m].
    """

    adjoint: np.ndarray
    translation: np.ndarray
    mass: np.ndarray
    tendon_offsets: np.ndarray
    tendon_reaches: np.ndarray
    tendon_inputs: np.ndarray
    springs: np.ndarray | None
    exact: int
    hyperelastic: int | None
    varying: int
    drag: np.ndarray
    displaced: np.ndarray
    cross_flow: np.ndarray
    along_flow: np.ndarray
    flow: np.ndarray
    in_fluid: int
    moving_fluid: int
    flow_smoothing: float
    tip_lever: np.ndarray


class NodeLoads(NamedTuple):
    """Loads at nodes, by rows; a load at a boundary stands at the row before it.

    Attributes:
        forces: (R, 3) that keep their direction, base frame [N].
        wrenches: (R, 6) that follow the node, body frame [N, N m].
        tip_force: (3,) at the tip, which keeps its direction, base frame [N].
        acting: 1 if any load acts; directed: 1 if any of the forces does.
    """

    forces: np.ndarray
    wrenches: np.ndarray
    tip_force: np.ndarray
    acting: int
    directed: int


class Extras(NamedTuple):
    """Fittings and loads of one block of lanes; a rod without any has None in its place.

    Attributes:
        fittings, loads: shared by the lanes.
        effective_mass: (R, 6, 6) N: the wrench rate that the rigid bodies beyond a row demand is
            -N times its acceleration.
        tip_force: (3,) at the tip, base frame, per lane [N].
        tensions: (T,) of the tendons of `fittings` at this moment, per lane, where any is elastic
            [N].
        pulls: (T,) what their inputs ask for at this moment, per lane: tension [N], or of elastic
            ones the wound length [m]; pulls_begin, pulls_end: at begin and end of the step.
        coupling: of elastic tendons, see `tendon_coupling`; None without.
        obstacles, contacts: what the rod may touch and how it does, see `contact`; None without.
    """

    fittings: Fittings
    loads: NodeLoads
    effective_mass: np.ndarray
    tip_force: np.ndarray
    tensions: np.ndarray
    pulls: np.ndarray
    pulls_begin: np.ndarray
    pulls_end: np.ndarray
    coupling: Any
    obstacles: Any
    contacts: Any
