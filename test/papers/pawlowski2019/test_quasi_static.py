"""The quasi-static controller: the Jacobian of the statics, steps in the box, what they leave."""

import numpy as np
import pytest
from kit.models import PERIOD, TendonModel, ask, context

from softcr_control.costs import CostSettings
from softcr_control.reference.references import Reference
from softcr_papers.pawlowski2019.lookahead.nlsq import Nlsq
from softcr_papers.pawlowski2019.quasi_static import (
    QuasiStatic,
    QuasiStaticSettings,
    static_change,
    static_jacobian,
    static_tip,
)
from softcr_papers.pawlowski2019.studies.targets import LENGTH, model


def test_the_jacobian_is_that_of_an_arc():
    """A tendon's moment T r over EI bends the rod to an arc, its tension over EA shortens it."""
    rod = model()
    tensions = np.array([0.2, 0.05, 0.0, 0.1])
    tip, jacobian = static_jacobian(rod, tensions, rod.nominal_parameters)

    def arc(t):
        bend = 4e-3 * np.array([t[0] - t[2], t[1] - t[3]]) / 4.90873852e-4
        curvature = np.hypot(*bend)
        stretched = LENGTH * (1.0 - t.sum() / 78.5398163)
        angle = LENGTH * curvature
        aside = stretched * (1.0 - np.cos(angle)) / angle
        return np.array([*(aside * bend / curvature), stretched * np.sin(angle) / angle])

    assert tip == pytest.approx(arc(tensions), abs=1e-7)
    moves = 1e-6 * np.eye(4)
    want = np.array([(arc(tensions + d) - arc(tensions - d)) / 2e-6 for d in moves]).T
    assert jacobian == pytest.approx(want, rel=2e-3, abs=1e-5)


def test_steps_of_a_fifth_of_the_error_reach_a_point_with_tensions_in_their_box():
    rod = model()
    wanted = static_tip(rod, np.array([0.1, 0.0, 0.0, 0.3]), rod.nominal_parameters)
    inputs, errors = np.zeros(4), []
    for _ in range(20):
        tip, jacobian = static_jacobian(rod, inputs, rod.nominal_parameters)
        errors.append(np.linalg.norm(tip - wanted))
        inputs = inputs + static_change(rod, inputs, jacobian, -0.2 * (tip - wanted), 1e-6)
        assert ((inputs >= 0.0) & (inputs <= 0.5)).all()
    ratios = np.array(errors[1:]) / errors[:-1]
    assert ratios == pytest.approx(np.full(19, 0.8), abs=0.05)  # as a gain of 0.2 leaves


def test_the_controller_and_nlsq_find_the_inputs_of_the_statics():
    robot = TendonModel()
    held = np.array([0.02, 0.09])
    goal = robot.tip_positions(robot.equilibrium(held, None)[None], None)[0]
    weights = CostSettings(input_rate=1e-4, tip_position=1e6)
    slow = QuasiStatic(context(robot), QuasiStaticSettings(update_ticks=20, input_level=1e-7))
    for controller in (slow, Nlsq(context(robot), Nlsq.Settings(costs=weights))):
        felt = active = np.array([0.0, 0.02])
        state = robot.equilibrium(felt, None)
        for k in range(600):
            rows = np.tile(goal, (controller.rows + 5, 1))
            answer = ask(controller, state, Reference(k * PERIOD, PERIOD, None, rows), felt)
            state = robot.step(state[None], felt[None], active[None], None, PERIOD)[0]
            felt, active = active, getattr(answer, "pressures", answer)
        assert active == pytest.approx(held, abs=2e-4)


def test_without_lead_an_update_answers_the_error_alone():
    robot = TendonModel()
    held = np.array([0.01, 0.05])
    state = robot.equilibrium(held, None)
    here = robot.tip_positions(state[None], None)[0]
    leading, lagging = (
        QuasiStatic(
            context(robot), QuasiStaticSettings(update_ticks=2, input_level=1e-7, lead=lead)
        )
        for lead in (1.0, 0.0)
    )
    rows = here + np.arange(9)[:, None] * np.array([1e-4, 0.0, 0.2e-4])
    moving = Reference(0.0, PERIOD, None, rows)
    assert ask(lagging, state, moving, held) == pytest.approx(held, abs=1e-6)
    assert ask(leading, state, moving, held)[0] == pytest.approx(held[0] + 2e-4, abs=1e-6)
