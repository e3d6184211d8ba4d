"""The closed loop on plants that the robot file does not know: length, angle, play, a hose."""

from dataclasses import replace

import numpy as np
import pytest

from softcr_control.reference.settings import ReferenceSettings
from softcr_estimation import ModelEstimatorSettings
from softcr_models import load_robot
from softcr_simulation.plant import SimulatedPlant
from softcr_simulation.plants import RodPlant
from softcr_studies.loops import tracking_loop
from softcr_studies.loops.closed_loop import mean_error_mm
from softcr_studies.loops.tracking_loop import SETTLED, Case, reference_of, run_loop

ROBOT = load_robot("licher2025")
CHAIN = {"hysteresis_radii": [300.0, 1000.0, 3000.0], "hose_time": 0.025}
CHAIN |= dict.fromkeys(("chamber_angles", "curvature_stiffness", "marker_offset"), True)
CHAINED = ROBOT.replace(pressure_chain=CHAIN)
# chosen on the motion of Experiment 4a, judged on a circle
CASE = Case("circle", ReferenceSettings(kind="circle", frequency=0.6), 6.0, plant_intervals=10)
FAST = replace(CASE, reference=ReferenceSettings(kind="trajectory"))
"""On the motion to 1.5 Hz a filter that opens nothing does not get out of a wrong basin."""
SEED = 11


class PlayPlant(SimulatedPlant):
    """Chambers act with the play of their pressures, of a half width [Pa]."""

    width = 0.0
    _acts = np.zeros(3)

    def _move(self, levels, piece):
        acting = [self._acts]
        for level in levels[1:]:
            acting.append(np.clip(acting[-1], level - self.width, level + self.width))
        self._acts = acting[-1]
        super()._move(np.array(acting), piece)


def settled_mm(monkeypatch, robot, plant_robot, width=0.0, case=CASE, **settings):
    """Mean tip error from 2 s on."""

    def made(known, case, seed):
        plant = PlayPlant(plant_robot, case.errors, seed, 10)
        plant.width = width
        return RodPlant.of(known, plant)

    monkeypatch.setattr(tracking_loop, "plant_of", made)
    numbers = ModelEstimatorSettings(**settings)
    source = reference_of(ROBOT, case)
    result = run_loop(robot, case, source, "rod_mpc", (SEED, SEED), filter_settings=numbers)
    return mean_error_mm(result, SETTLED)


def turned():
    """The robot with its second chamber 3 degrees off."""
    first, second, third = ROBOT.actuators
    moved = second.model_copy(update={"angle": second.angle + np.deg2rad(3.0)})
    return ROBOT.replace(actuators=(first, moved, third))


@pytest.mark.slow
def test_a_longer_robot_is_followed_because_the_filter_opens(monkeypatch):
    longer = ROBOT.replace(length=1.02 * ROBOT.length)
    found = [
        settled_mm(monkeypatch, ROBOT, longer, case=FAST, reopening=reopening)
        for reopening in (True, False)
    ]
    assert found[0] < 0.4
    assert found[1] > 2.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "width", "bound"), [(ROBOT, 0.0, 0.15), (turned(), 0.0, 0.4), (ROBOT, 1e3, 0.5)]
)
def test_a_chain_finds_angle_and_play_and_costs_little(monkeypatch, plant, width, bound):
    assert settled_mm(monkeypatch, CHAINED, plant, width, filter="ekf") < bound
