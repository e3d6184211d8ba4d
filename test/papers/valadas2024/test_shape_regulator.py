"""The regulator of strains: its statics, its period, its limits."""

import numpy as np
import pytest
from kit.refusals import one_line

from softcr_papers.valadas2024.shape_regulator import RegulatorGains, ShapeRegulator
from softcr_papers.valadas2024.strain.arm import load_strain_arm
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.integration import simulate
from softcr_papers.valadas2024.strain.strain_model import LagrangianModel
from softcr_papers.valadas2024.studies.control import GAINS

ROBOT = load_strain_arm("pcs_two_segments")
PLANT = StrainDynamics(ROBOT.numbers)
WANTED = np.array([-16.7, -0.008, 0.079, 9.6, -0.048, -0.095])


def driven(regulator, period, seconds, wanted=WANTED):
    """(K + 1, 12) states of the plant under torques that are held for a period."""
    states = [np.zeros(12)]
    for _ in range(round(seconds / period)):
        torque = regulator.tick(states[-1][:6], states[-1][6:], wanted, period)
        states.append(simulate(PLANT, states[-1], torque[None], period)[0, -1])
    return np.array(states)


@pytest.mark.parametrize("model", [PLANT, LagrangianModel(ROBOT)], ids=["dynamics", "model"])
def test_the_feedforward_holds_the_shape(model):
    regulator = ShapeRegulator(model, GAINS)
    at_rest = regulator.torque(WANTED, np.zeros(6), WANTED)
    np.testing.assert_allclose(
        PLANT.acceleration(WANTED, np.zeros(6), at_rest), np.zeros(6), atol=1e-6
    )
    np.testing.assert_array_equal(at_rest, regulator.feedforward(WANTED))


def test_torque_is_the_law():
    regulator, random = ShapeRegulator(PLANT, GAINS), np.random.default_rng(0)
    q, rate, before = (random.normal(size=6) * 0.1 for _ in range(3))
    regulator.integrate(before, WANTED, 0.5)
    expected = (
        regulator.feedforward(WANTED) + GAINS.proportional * (WANTED - q)
        - GAINS.derivative * rate
        + GAINS.integral * 0.5 * np.tanh(GAINS.saturation * (WANTED - before))
    )  # fmt: skip
    np.testing.assert_allclose(regulator.torque(q, rate, WANTED), expected, rtol=1e-12)
    regulator.reset()
    assert not regulator.integral.any()


def test_a_short_period_is_the_continuous_law():
    regulator, random = ShapeRegulator(PLANT, GAINS), np.random.default_rng(1)
    q, rate = 0.1 * random.normal(size=6), 0.1 * random.normal(size=6)
    law = regulator.torque(q, rate, WANTED)
    errors = [np.abs(ShapeRegulator(PLANT, GAINS).tick(q, rate, WANTED, h) - law).max()
              for h in (1e-7, 1e-8)]  # fmt: skip
    assert errors[1] < 0.2 * errors[0]


@pytest.mark.parametrize("period", [0.001, 0.01])
def test_a_light_robot_is_held_with_a_period(period):
    states = driven(ShapeRegulator(PLANT, GAINS), period, 0.3)
    sizes = np.array([60.0, 0.3, 0.3] * 2)
    assert (np.abs(states[-1, :6] - WANTED) / sizes).max() < 0.05


def test_held_torques_of_the_continuous_law_diverge():
    """Why `tick` looks ahead: the same law, held for a millisecond."""
    regulator, state = ShapeRegulator(PLANT, GAINS), np.zeros(12)
    for _ in range(60):
        torque = regulator.torque(state[:6], state[6:], WANTED)
        state = simulate(PLANT, state, torque[None], 0.001)[0, -1]
        if not np.isfinite(state).all() or np.abs(state[6:]).max() > 1e5:
            return
    pytest.fail("the motion stayed small")


def test_torques_keep_their_limits():
    largest = 0.01 * np.ones(6)
    regulator = ShapeRegulator(PLANT, GAINS, largest)
    assert np.abs(regulator.tick(np.zeros(6), np.zeros(6), WANTED, 0.005)).max() == 0.01
    assert np.abs(regulator.torque(np.zeros(6), np.zeros(6), WANTED)).max() == 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RegulatorGains([1.0], [1.0, 2.0], [1.0], [1.0]), "integral .* for each strain"),
        (lambda: RegulatorGains([1.0], [-1.0], [1.0], [1.0]), "finite and not below 0"),
        (lambda: ShapeRegulator(PLANT, RegulatorGains(*[[1.0]] * 4)), "the model has 6 strains"),
        (lambda: ShapeRegulator(PLANT, GAINS).tick(WANTED, WANTED, WANTED, 0.0), "period 0.0 s"),
        (
            lambda: ShapeRegulator(PLANT, GAINS).tick(np.nan * WANTED, WANTED, WANTED, 0.1),
            "must be finite",
        ),
    ],
)
def test_what_is_not_allowed_gets_one_line(call, message):
    with one_line(message):
        call()
