"""Fisher information of motions: against relations and simulations that must hold."""

import numpy as np
import pytest
from kit.studies import results_of

from softcr_estimation.identification.information import (
    Information,
    Motion,
    lag_information,
    offset_units,
    tip_information,
)
from softcr_models import load_robot
from softcr_models.chain.pressure import PressureLag
from softcr_models.errors import UserError
from softcr_runtime.bags.offline_bag import OfflineBag
from softcr_runtime.wire.messages import pressures_to_message
from softcr_studies.robustness.observability import (
    PERIOD,
    PLANNED,
    STUDY,
    planned,
    recorded,
    rows,
    run,
)

ROBOT = load_robot("licher2025")


def test_deviations_are_those_of_the_inverse_and_infinite_where_two_are_one():
    matrix = np.array([[4e4, 1e4], [1e4, 9e4]])
    found = Information(("a", "b"), matrix)
    assert found.alone == pytest.approx([1 / 200, 1 / 300])
    assert found.together == pytest.approx(np.sqrt(np.linalg.inv(matrix).diagonal()))
    assert found.not_excited == ()
    same = Information(("a", "b", "c"), np.array([[1e8, 1e8, 0], [1e8, 1e8, 0], [0, 0, 1.0]]))
    assert same.together[:2] == pytest.approx([np.inf, np.inf])
    assert same.together[2] == pytest.approx(1.0)
    assert same.not_excited == ("a", "b", "c")
    assert same.least == pytest.approx(np.array([1, -1, 0]) * same.least[0])
    assert np.abs(same.least[:2]) == pytest.approx(2 * [np.sqrt(0.5)])
    assert same.least.max() > 0.5
    nothing = Information(("a", "b"), np.zeros((2, 2)))
    assert np.isinf(nothing.alone).all()
    assert np.isinf(nothing.together).all()
    assert np.isnan(nothing.least).all()


def test_at_rest_a_gain_is_an_offset_and_in_motion_it_is_not():
    held = np.tile([45e3, 25e3, 15e3], (8, 1))
    rest = tip_information(ROBOT, held)
    gains, offsets = slice(3, 6), slice(6, 9)
    ratio = held[0] / 1e4  # d(gain p) = p dgain, the offset's unit is 10 kPa
    by_gain, by_offset = rest.matrix[gains], rest.matrix[offsets]
    moves = np.arange(len(rest.matrix)) != 2  # damping: nothing at rest but rounding
    assert by_gain[:, moves] == pytest.approx(ratio[:, None] * by_offset[:, moves], rel=1e-3)
    assert np.abs(rest.matrix[2]).max() < 1e-9 * rest.matrix[0, 0]
    assert np.isinf(rest.together).any()
    times = np.arange(0, 1.5, PERIOD)[:, None]
    turning = 35e3 + 20e3 * np.sin(2 * np.pi * (1.5 * times + np.arange(3) / 3))
    moved = tip_information(ROBOT, turning)
    assert np.isfinite(moved.together).all()
    assert moved.together[2] < 0.02


def test_a_chains_numbers_are_told_beside_the_rods():
    chain = {"hose_time": 0.025, "chamber_angles": True, "marker_offset": True}
    readings = planned(ROBOT, PLANNED["to 1.5 Hz, 12 s"]).readings[:70]
    alone = tip_information(ROBOT, readings)
    told = tip_information(ROBOT.replace(pressure_chain=chain), readings)
    added = {"hose_1", "chamber_angle_2", "marker_offset_z"}
    assert added <= set(told.names) - set(alone.names)
    shared = [told.names.index(name) for name in alone.names]
    np.testing.assert_allclose(told.matrix[np.ix_(shared, shared)], alone.matrix, rtol=1e-5)
    # a marker beside the tip moves it by as much, whatever the rod does
    along = told.names.index("marker_offset_z")
    assert told.alone[along] * 0.025 == pytest.approx(2e-4 / np.sqrt(69), rel=1e-6)
    still = tip_information(ROBOT.replace(pressure_chain=chain), np.tile([3e4, 2e4, 1e4], (20, 1)))
    assert {"hose_1", "hose_2", "hose_3"} <= set(still.not_excited)


def test_offsets_of_tensions_are_in_newtons():
    """Tensions of a tenth of a newton, where 10 kPa would be a rope of ten kilonewtons."""
    arm = load_robot("tendon_arm")
    units = offset_units(arm)
    assert units == pytest.approx(np.full(4, 0.05))
    held = np.tile([0.2, 0.1, 0.05, 0.15], (4, 1))
    rest = tip_information(arm, held)
    gains, offsets = slice(3, 7), slice(7, 11)
    by_gain, by_offset = rest.matrix[gains], rest.matrix[offsets]
    assert by_gain == pytest.approx(held[0][:, None] / 0.05 * by_offset, rel=1e-3)
    assert 1e-4 < rest.alone[offsets].min() < 0.1


def test_the_lags_information_is_what_least_squares_scatters_by():
    lag, random = PressureLag(11.0, 10.94), np.random.default_rng(0)
    commands = random.uniform(1e4, 6e4, (300, 1))
    readings = lag.trajectory(np.array([3e4]), commands[None], PERIOD)[0]
    motion = Motion(readings[:-1], commands)
    bound = lag_information(lag, motion, np.array([1e4])).together
    found = []
    for _ in range(400):
        noise = 100.0 * random.standard_normal(len(commands) - 1)
        noise *= np.sqrt(1 + np.exp(-2 * lag.pole * PERIOD))
        target = readings[1:-1, 0] + noise
        a, b = np.linalg.lstsq(np.hstack([readings[:-2], commands[:-1]]), target, rcond=None)[0]
        found.append((-np.log(a) / PERIOD / lag.pole, b / (1 - a) / (lag.gain / lag.pole)))
    assert np.std(found, axis=0) == pytest.approx(bound, rel=0.15)


def test_the_commands_of_a_planned_motion_make_its_pressures():
    fast = planned(ROBOT, PLANNED["to 1.5 Hz, 12 s"])
    made = ROBOT.pressure_lag.trajectory(fast.readings[0], fast.commands[None, :-1], PERIOD)[0]
    assert made == pytest.approx(fast.readings, abs=1e-6)


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """Readings every 9 ms that rise by 100 Pa each, of played commands that are 1 kPa above."""
    made = OfflineBag()
    for number in range(1, 9):
        for topic, more in (("pressure/state", 0.0), ("pressure/sent", 1e3)):
            pressures, stamp = np.full(3, 2e4 + 100.0 * number + more), 9_000_000 * number
            made.add(topic, stamp, pressures_to_message(pressures, ROBOT.chamber_names, stamp))
    path = tmp_path_factory.mktemp("bag") / "run"
    made.write(path)
    return path


def test_a_bag_is_resampled_and_its_commands_are_held_and_one_of_others_refused(bag, tmp_path):
    motion = recorded(bag, ROBOT)
    times = 0.009 + PERIOD * np.arange(len(motion.readings))
    assert len(times) == 5
    assert motion.readings[:, 1] == pytest.approx(2e4 + 100.0 * times / 0.009)
    # each is played until the next one; of a tick that counts which was in the middle of it
    newest = np.floor((times + PERIOD / 2) / 0.009)
    assert motion.commands[:, 0] == pytest.approx(2.1e4 + 100.0 * newest)
    with pytest.raises(UserError, match="nowhere"):
        recorded(tmp_path / "nowhere", ROBOT)
    with pytest.raises(UserError, match="0 pressures and 0 commands of four_chambers"):
        recorded(bag, load_robot("four_chambers"))


def test_a_recorded_motion_is_reported(bag, tmp_path):
    results = results_of(STUDY, tmp_path, run, bag=f"{bag}, ")
    assert [cell.case for cell in results.cells] == [str(bag)]
    found = list(rows(results))
    assert {row.case for row in found} == {"run"}
    assert {row.method for row in found} >= {"tip_mass", "pressure_gain_2", "lag_pole"}
    missing = next(row for row in found if row.method == "all numbers")
    assert missing.mean >= 9  # a tenth of a second tells nothing of rod and pressure sensors
    assert [cell.case for cell in STUDY.cells(STUDY.settings())] == list(PLANNED)
