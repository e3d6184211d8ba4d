"""The kinematic simulation of Dalenberg, Sec. V-A: an arm that goes exactly where it is told.

The arm has the model's three sections and other lengths. Sensors show where it is; the rates of the
control law are applied to it as they are, so the commanded configuration is the true one. The
thesis leaves open the start, the time step, the filter's window and the secondary objective's gain.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_control.apcc import Apcc, ApccSettings
from softcr_control.apcc.adaptation import AdaptationSettings
from softcr_models.constant_curvature.kinematics import ConstantCurvatureChain, coverage_of
from softcr_models.constant_curvature.shape_error import shape_error
from softcr_models.constant_curvature.tendons import Tendons

CHAIN = ConstantCurvatureChain(3, base=np.diag([1.0, -1.0, -1.0, 1.0]))
TRUE_LENGTHS = np.array([0.105, 0.255, 0.24])
FIRST_LENGTHS = np.array([0.12, 0.28, 0.27])
SENSORS = np.array([0.105, 0.36, 0.60])
CENTRE, AMPLITUDE, FREQUENCY = np.array([0.0, 0.0, -0.5]), np.array([0.5, 0.3, 0.1]), 0.2 * np.pi
GAINS = (90.0, 42.5, 35.0)
LOST = 1.0
"""A run whose tip error exceeds this has diverged [m]."""

_TENDONS = Tendons.of_racks(SENSORS, 0.03, np.zeros((3, 1)))  # they move nothing here
_SHAPE_PERIOD = 0.1  # between shapes that are compared [s]


@dataclass(frozen=True, eq=False)
class KinematicTrace:
    """A run of T ticks; shorter than asked for when it diverged.

    Attributes:
        times: (T,) [s].
        errors: (T,) distance of the tip from its target [m].
        lengths: (T, 3) estimates before the tick [m].
        linear, angular: (T, 3) what Algorithm 2 left of the sensors' errors [m], [rad].
        shape_times, shapes: (K,) [s] and E_shape [m] there.
        diverged: whether the run was given up.
    """

    times: np.ndarray
    errors: np.ndarray
    lengths: np.ndarray
    linear: np.ndarray
    angular: np.ndarray
    shape_times: np.ndarray
    shapes: np.ndarray
    diverged: bool


def law(
    gains: tuple[float, ...] = GAINS, objective_gain: float = 1.0, state: str = "commanded"
) -> ApccSettings:
    """The thesis's controller of this simulation, without bounds on the lengths but > 2 cm."""
    return ApccSettings.model_validate(
        {
            "gain": 1.0,
            "null_space_gain": objective_gain,
            "jacobian_state": state,
            "adaptation": AdaptationSettings(gains=gains, longest=np.inf),
        }
    )


def straight_start() -> np.ndarray:
    """(9,) the straight arm, shortened evenly to end at the trajectory's first point [m]."""
    shortening = (np.linalg.norm(CENTRE) - TRUE_LENGTHS.sum()) / 3.0
    return np.tile([0.0, 0.0, shortening], 3)


def bent_start(seed: int) -> np.ndarray:
    """(9,) a random shape, bends of some 0.5 rad, whose tip is at the trajectory's first point."""
    random = np.random.default_rng(seed)
    q = random.normal(size=9) * np.tile([0.5, 0.5, 0.0], 3)
    for _ in range(200):
        inverse = np.linalg.pinv(CHAIN.position_jacobian(q, TRUE_LENGTHS))
        q = q + 0.3 * inverse @ (CENTRE - CHAIN.position(q, TRUE_LENGTHS))
    return q


def simulate(
    settings: ApccSettings,
    start: np.ndarray,
    dt: float,
    seconds: float,
    tick: Callable[[], None] = lambda: None,
) -> KinematicTrace:
    """One run.

    Args:
        settings: of the controller.
        start: (9,) true configuration, which the controller is told [m].
        dt: time step of arm and controller [s].
        seconds: length of the run.
        tick: called after every step.
    """
    controller = Apcc(CHAIN, FIRST_LENGTHS, SENSORS, _TENDONS, settings)
    controller.start(start)
    coverage = coverage_of(SENSORS, TRUE_LENGTHS)
    q, diverged = np.array(start, float), False
    times, errors, lengths, linear, angular = [], [], [], [], []
    shape_times, shapes = [], []
    every = max(1, round(_SHAPE_PERIOD / dt))
    for step in range(round(seconds / dt) + 1):
        t = step * dt
        before = controller.rest_lengths
        phase = FREQUENCY * t
        command = controller.tick(
            t,
            CHAIN.pose(q, TRUE_LENGTHS, coverage),
            CENTRE + AMPLITUDE * np.sin(phase),
            FREQUENCY * AMPLITUDE * np.cos(phase),
            true_configuration=q,
        )
        error, inference = float(np.linalg.norm(command.error)), command.inference
        tick()
        if not error < LOST:
            diverged = True
            break
        times.append(t)
        errors.append(error)
        lengths.append(before)
        linear.append(inference.linear)
        angular.append(inference.angular)
        if step % every == 0:
            model = CHAIN, inference.configuration, before
            shape_times.append(t)
            shapes.append(shape_error(CHAIN, q, TRUE_LENGTHS, *model))
        q = q + dt * command.rate
    return KinematicTrace(
        times=np.array(times),
        errors=np.array(errors),
        lengths=np.array(lengths),
        linear=np.array(linear),
        angular=np.array(angular),
        shape_times=np.array(shape_times),
        shapes=np.array(shapes),
        diverged=diverged,
    )
