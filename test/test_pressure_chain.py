"""The chain between a reading and a rod: what it remembers, what acts, and who takes it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from kit.refusals import one_line

from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.gauss_newton import GaussNewtonMpc, GaussNewtonSettings
from softcr_control.reference.references import Reference
from softcr_estimation import ModelEstimator, ModelEstimatorSettings
from softcr_estimation.context import EstimationContext
from softcr_estimation.identification.stages import Identified, _of_chain
from softcr_estimation.identification.stretches import Samples
from softcr_estimation.model_filter import ModelFilter
from softcr_models import CosseratRod, load_robot
from softcr_models.arguments import ArgumentError
from softcr_models.chain.identification import identify_chain
from softcr_models.chain.memory import ChainMemory
from softcr_models.chain.readings import Readings
from softcr_models.errors import UserError
from softcr_models.identification.identifiable import with_parameters
from softcr_models.identification.measured_groups import TIP_POSITION, groups_of
from softcr_models.identification.rod_identification import Recording, in_motion
from softcr_models.model import TIP, counts_and_warnings
from softcr_models.models import make_model
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import Robot

DT = 1 / 70
CHAIN = {"hysteresis_radii": [300.0, 1000.0, 3000.0], "hose_time": 0.025, "creep_time": 2.0}
CHAIN |= dict.fromkeys(("chamber_angles", "curvature_stiffness", "marker_offset"), True)


def with_values(**values):
    return CHAIN | {"values": values}


@pytest.fixture(scope="module")
def robot():
    return load_robot("licher2025").replace(pressure_chain=CHAIN)


@pytest.fixture(scope="module")
def model(robot):
    return make_model("rod", robot, {"single_precision": False})


@pytest.fixture(scope="module")
def plain(robot):
    return RodPrediction(CosseratRod(robot, 5), single_precision=False)


def numbers(model, **given):
    found = model.nominal_parameters.copy()
    for name, value in given.items():
        found[model.parameter_names.index(name)] = value
    return found[None]


def marker(offset):
    """The parameters of a marker's offset (3,) [m]."""
    return {f"marker_offset_{a}": value for a, value in zip("xyz", offset, strict=True)}


def swinging(times):
    """(T, 3) pressures that begin within a second and swing at frequencies of their own [Pa]."""
    swing = 1.0 + 0.8 * np.sin(2.0 * np.pi * np.outer(times, (0.7, 1.1, 1.6)))
    return 3e4 * np.minimum(times, 1.0)[:, None] * swing


def wandering(count, rng, size=3, scale=3e3):
    """(count, size) readings that go up and down by kilopascals [Pa]."""
    return 35e3 + np.cumsum(scale * rng.standard_normal((count, size)), axis=0)


def test_a_stop_is_the_reading_less_its_play():
    """The play operator, defined by its own rule: it moves only where the reading pushes it."""
    readings, radius = wandering(400, np.random.default_rng(1), size=2), 4e3
    memory = ChainMemory(2, [radius], [])
    plays = [readings[0] - np.clip(readings[0], -radius, radius)]
    for reading in readings[1:]:
        plays.append(np.minimum(np.maximum(plays[-1], reading - radius), reading + radius))
    found = memory.along(memory.begin(readings[0]), readings[None], DT)[0]
    np.testing.assert_allclose(found, readings - plays, atol=1e-9)
    assert (np.abs(found) == radius).mean() > 0.2


def test_a_chain_tells_what_its_rod_computed_again(model):
    counts, warnings = counts_and_warnings(model)
    assert counts == counts_and_warnings(model._inner)[0]
    assert set(counts) == {"retried", "retries", "not_finite"}
    assert warnings == []


def test_a_chain_that_is_nominal_is_no_chain(model, plain):
    rng, inputs = np.random.default_rng(4), model.inputs
    row, of_rod = model.nominal_parameters, plain.nominal_parameters
    state = plain.equilibrium(np.array([40e3, 30e3, 20e3]), of_rod)
    np.testing.assert_array_equal(model.equilibrium(np.array([40e3, 30e3, 20e3]), row), state)
    readings = wandering(9, rng)
    felt = np.hstack((readings, inputs.memory.along(inputs.memory.begin(readings[0]),
                                                    readings[None], DT)[0]))  # fmt: skip
    for levels in (readings, felt):  # what is not remembered does nothing
        np.testing.assert_array_equal(
            model.rollout_tips(state, levels[None], row, DT),
            plain.rollout_tips(state, readings[None], of_rod, DT),
        )
        stepped = model.step(state[None], levels[:1], levels[1:2], row[None], DT)
        expected = plain.step(state[None], readings[:1], readings[1:2], of_rod[None], DT)
        np.testing.assert_array_equal(stepped, expected)
    names = (TIP, "shape", "base_wrench")
    seen = model.observe(names, stepped, felt[1:2], row[None])
    for name, each in plain.observe(names, stepped, readings[1:2], of_rod[None]).items():
        np.testing.assert_array_equal(seen[name], each)


def plain_chain(model, reading_rows, remembered, sensors, row):
    """(T + 1, m) pressures that act along readings (T + 1, m), by loops over plain numbers."""
    told, (gain, offset) = dict(zip(model.parameter_names, row, strict=True)), sensors
    radii, times = CHAIN["hysteresis_radii"], (CHAIN["hose_time"], CHAIN["creep_time"])
    plays = [[reading_rows[0][i] - remembered[3 * i + j] for j in range(3)] for i in range(3)]
    lagging = [[reading_rows[0][i] + remembered[9 + 3 * k + i] for k in range(2)] for i in range(3)]
    found = []
    for tick, reading in enumerate(reading_rows):
        straight = []
        for i in range(3):
            here = reading[i]
            if tick:
                rate = (here - reading_rows[tick - 1][i]) / DT
                for k, time in enumerate(times):
                    # of x' = (p - x) / time on a ramp: the steady lag and a part that fades
                    left = lagging[i][k] - reading_rows[tick - 1][i] + rate * time
                    lagging[i][k] = here - rate * time + left * np.exp(-DT / time)
            for j, radius in enumerate(radii):
                plays[i][j] = min(max(plays[i][j], here - radius), here + radius)
            weights = [
                told[f"hysteresis_{j + 1}"] + told[f"hysteresis_{j + 1}_of_{i + 1}"]
                for j in range(3)
            ]
            share = min(1.0, 0.95 / sum(weights)) if sum(weights) > 0.0 else 1.0
            lost = sum(share * weight * (here - plays[i][j]) for j, weight in enumerate(weights))
            late = [each - here for each in lagging[i]]
            straight.append(
                gain[i] * here + offset[i] - lost
                + told[f"hose_{i + 1}"] * late[0] + told["creep"] * late[1]
            )  # fmt: skip
        wrench = model.rod.robot.actuation_matrix @ straight
        for i in range(3):  # a chamber turned by a small angle adds its moment turned by a quarter
            own = model.rod.robot.actuation_matrix[:, i] * straight[i]
            angle = told[f"chamber_angle_{i + 1}"]
            wrench += angle * np.array([0.0, 0.0, 0.0, -own[4], own[3], 0.0])
        found.append(np.linalg.lstsq(model.rod.robot.actuation_matrix, wrench)[0])
    return np.array(found)


DRAWN = ("hysteresis", "hose", "creep", "chamber")


@pytest.mark.parametrize("batch", [1, 3, 8, 21])
def test_from_readings_to_tips_is_what_plain_numbers_say(model, plain, batch):
    """Of candidates in lanes: gains and offsets, memory, weights (of one chamber beyond what they
    may be), turned chambers and marker."""
    rng = np.random.default_rng(batch)
    names = [each for each in model.parameter_names if each.startswith(DRAWN)]
    offset_of_marker = np.array([2e-3, -1e-3, 3e-3])
    drawn = {name: rng.uniform(-0.1, 0.2) for name in names} | marker(offset_of_marker)
    row = numbers(model, **{**drawn, "hysteresis_3_of_2": 1.1})[0]
    sensors = rng.uniform(0.95, 1.05, 3), rng.uniform(-500.0, 500.0, 3)
    values = 3e4 + 2e3 * rng.standard_normal((batch, 8, 3)).cumsum(axis=1)
    radii = np.tile(CHAIN["hysteresis_radii"], 3)
    remembered = np.concatenate((rng.uniform(-radii, radii), rng.normal(0.0, 300.0, 6)))
    acts = [plain_chain(model, each, remembered, sensors, row) for each in values]
    state = plain.equilibrium(np.full(3, 3e4), plain.nominal_parameters)
    readings = Readings(values, remembered, *sensors)
    of_rod = plain.rollout(state, np.array(acts), plain.nominal_parameters, DT)
    np.testing.assert_allclose(model.rollout(state, readings, row, DT), of_rod, atol=1e-8)
    tips = plain.rollout_tips(state, np.array(acts), plain.nominal_parameters, DT)
    tips[..., 3] += tips[..., :3] @ offset_of_marker
    np.testing.assert_allclose(model.rollout_tips(state, readings, row, DT), tips, atol=1e-10)
    felt = readings.felt(model.inputs.memory, DT)
    np.testing.assert_allclose(model.rollout_tips(state, felt, row, DT), tips, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("values", (2, 3, 18)), ("remembered", (14,)), ("gain", (2,)), ("offset", (1, 3))],
)
def test_readings_of_a_wrong_shape_are_refused(model, name, shape):
    readings = Readings(np.zeros((2, 3, 3)), np.zeros(15), np.ones(3), np.zeros(3))
    wrong, state = replace(readings, **{name: np.ones(shape)}), np.zeros(model.state_size)
    with pytest.raises(ArgumentError, match=f"{'inputs' if name == 'values' else name} of shape"):
        model.rollout(state, wrong, model.nominal_parameters, DT)


@pytest.mark.parametrize(
    ("name", "place", "pressures"),
    [
        ("licher2025_chain", 0, [60e3, 20e3, 20e3]),
        ("two_segments", 1, [50e3, 20e3, 10e3, 10e3, 30e3, 5e3]),
        ("two_segments", 4, [50e3, 20e3, 10e3, 10e3, 30e3, 5e3]),
        ("four_chambers", 2, [10e3, 60e3, 50e3, 5e3]),
    ],
)
def test_a_turned_chamber_is_that_of_a_turned_robot(name, place, pressures):
    robot, pressures = load_robot(name), np.array(pressures)
    robot = robot.replace(pressure_chain={"chamber_angles": True})
    model = make_model("rod", robot, {"single_precision": False})
    actuators = list(robot.actuators)
    chamber = actuators[place]
    actuators[place] = chamber.model_copy(update={"angle": chamber.angle + 1e-3})
    straight, turned = (
        CosseratRod(robot.replace(actuators=each, pressure_chain=None), 5)
        for each in (robot.actuators, actuators)
    )
    before, wanted = (rod.tip_pose(rod.equilibrium(pressures))[:3, 3] for rod in (straight, turned))
    row = numbers(model, **{f"chamber_angle_{place + 1}": 1e-3})
    found = model.observe((TIP,), model.equilibrium(pressures, row[0])[None], None, row)[TIP][0]
    assert np.linalg.norm(wanted - before) > 4e-6
    np.testing.assert_allclose(found[:, 3], wanted, atol=1e-7)


@pytest.mark.parametrize("taken", ["first", "last"])
def test_two_chambers_of_a_segment_cannot_be_turned(taken):
    """Neither can make the moment about the other axis, whatever the chambers elsewhere do."""
    robot = load_robot("two_segments")
    kept = robot.actuators[1:] if taken == "first" else robot.actuators[:-1]
    with pytest.raises(UserError, match="three or more around the centre line"):
        make_model("rod", robot.replace(actuators=kept, pressure_chain={"chamber_angles": True}))


def test_a_rollout_with_a_stiffness_of_its_own_is_close_to_single_steps(model):
    row = numbers(model, curvature_stiffness=-0.2)
    readings = wandering(9, np.random.default_rng(7), scale=1.5e3)
    state = model.equilibrium(readings[0], row[0])
    levels = np.stack((readings, readings + 1e3))
    tips = model.rollout_tips(state, levels, row[0], DT)
    assert tips.shape == (2, 8, 3, 4)
    stepped, plain_step = state[None], []
    for begin, end in pairwise(readings):
        stepped = model.step(stepped, begin[None], end[None], row, DT)
        plain_step.append(model.tip_poses(stepped, row)[0])
    moved = np.linalg.norm(np.diff(np.array(plain_step)[:, :, 3], axis=0), axis=1)
    assert moved.min() > 2e-4
    np.testing.assert_allclose(tips[0], plain_step, atol=1e-4)


def test_the_marker_stands_beside_the_tip(model, plain):
    state = plain.equilibrium(np.array([50e3, 20e3, 10e3]), plain.nominal_parameters)
    offset = np.array([1e-3, -2e-3, 3e-3])
    row = numbers(model, **marker(offset))
    pose = plain.tip_poses(state[None], plain.nominal_parameters[None])[0]
    seen = model.tip_poses(state[None], row)[0]
    np.testing.assert_allclose(seen[:, 3], pose[:, 3] + pose[:, :3] @ offset, atol=1e-15)
    end = plain.rod.node_poses(state)[-1]
    np.testing.assert_allclose(model.tip_beyond(end, row[0])[:3, 3], seen[:, 3], atol=1e-12)


def test_the_filter_finds_a_hysteresis(model):
    """The plant is the model with weights of its own; readings are exact, the tip has 0.2 mm."""
    rng, memory = np.random.default_rng(6), model.inputs.memory
    truth = numbers(model, hysteresis_2=0.5, chamber_angle_2=0.03)
    reading = np.full(3, 35e3)
    remembered = memory.begin(reading)
    state = model.equilibrium(np.concatenate((reading, remembered)), truth[0])[None]
    estimator = ModelEstimator(model, ModelEstimatorSettings(filter="ekf"))
    estimator.start(reading, 0.0)
    for tick in range(1, 211):
        phase = 2 * np.pi * DT * tick * np.array([0.5, 0.9, 1.4])
        after = 35e3 + 8e3 * np.sin(phase)
        past = memory.along(remembered, np.stack((reading, after))[None], DT)[0]
        begin, end = (np.concatenate(each)[None] for each in ((reading, past[0]), (after, past[1])))
        state = model.step(state, begin, end, truth, DT)
        reading, remembered = after, past[1]
        tip = model.tip_poses(state, truth)[0, :, 3] + 2e-4 * rng.standard_normal(3)
        estimate = estimator.update(reading, {TIP: tip}, DT * tick)
    for name, true in (("hysteresis_2", 0.5), ("hysteresis_1", 0.0), ("chamber_angle_2", 0.03)):
        assert abs(estimate.parameters[name] - true) < 3.0 * estimate.parameters_std[name]
    assert estimate.parameters_std["hysteresis_2"] < 0.1
    assert estimate.parameters_std["chamber_angle_2"] < 0.01
    assert not estimate.is_opened


def gauss_newton(model):
    return GaussNewtonMpc(ControlContext(None, model, DT), GaussNewtonSettings())


def test_a_controller_predicts_what_the_model_does(model):
    """Its plan, simulated tick by tick from the readings on, ends where it said."""
    controller = gauss_newton(model)
    told = {"hysteresis_2": 0.6, "hose_1": 0.2, "pressure_gain_1": 1.02, "pressure_offset_3": 300.0}
    row = numbers(model, **{n: v for n, v in told.items() if not n.startswith("pressure")})
    memory = model.inputs.memory
    gain, offset = np.array([1.02, 1.0, 1.0]), np.array([0.0, 0.0, 300.0])
    readings = [np.full(3, 30e3), np.array([33e3, 30e3, 28e3]), np.array([35e3, 29e3, 29e3])]
    state = model.equilibrium(readings[0], row[0])
    tip = model.tip_poses(state[None], row)[0, :, 3]
    wanted = np.tile(tip + np.array([4e-3, 0.0, 0.0]), (controller.rows, 1))
    reference = Reference(0.0, DT, None, wanted)
    for tick, reading in enumerate(readings):
        seen = Observation(tick * DT, state, told, reference, reading, model)
        plan = controller.command(seen)
    # the reading goes on under the command sent before, then under the plan's
    remembered = memory.begin(readings[0])
    for before, after in pairwise(readings):
        remembered = memory.along(remembered, np.stack((before, after))[None], DT)[0, 1]
    lag = controller._horizon.lag
    (sent,) = controller._horizon._sent.pending
    commands = [sent, *controller._knots.commands(plan.best_knots[None])[0]]
    reading, tips = readings[-1], []
    for command in commands:
        after = lag.step(reading, command, DT)
        past = memory.along(remembered, np.stack((reading, after))[None], DT)[0]
        felt = ((reading, past[0]), (after, past[1]))
        begin, end = (np.concatenate((gain * p + offset, x))[None] for p, x in felt)
        state = model.step(state[None], begin, end, row, DT)[0]
        reading, remembered = after, past[1]
        tips.append(model.tip_poses(state[None], row)[0, :, 3])
    np.testing.assert_allclose(plan.predicted_tips, tips[1:], atol=1e-9)


def test_differences_reach_beyond_a_play(model, plain):
    np.testing.assert_allclose(gauss_newton(model)._perturbation, 1000.0)
    np.testing.assert_allclose(gauss_newton(plain)._perturbation, 20.0)


@pytest.mark.parametrize(
    ("chain", "word"),
    [
        ({}, "no element is on"),
        ({"hysteresis_radii": [1000.0, 1200.0]}, "tells them apart"),
        ({"hysteresis_radii": [100.0]}, "sensor's noise"),
        ({"hysteresis_radii": [6e4]}, "never slides"),
        ({"hose_time": 0.1, "creep_time": 0.5}, "10 times"),
        (
            with_values(hysteresis_9=0.1),
            "values: hysteresis_9: no parameter of the elements that are on",
        ),
        (
            with_values(chamber_angle_1=2.0),
            "values: chamber_angle_1: 2 is not allowed: must be from -0.5",
        ),
    ],
)
def test_what_sensors_cannot_tell_and_values_that_cannot_be_are_refused_in_one_line(chain, word):
    robot = load_robot("licher2025")
    noisy = [each.model_copy(update={"noise": 50.0}) if each.type == "pressure" else each
             for each in robot.sensors]  # fmt: skip
    with one_line(word) as told:
        robot.replace(sensors=noisy, pressure_chain=chain)
    assert "pressure_chain" in str(told.value)


# --- values of the file -------------------------------------------------------------------------


def test_a_chain_begins_with_the_values_of_its_file():
    values = {"hysteresis_2": 0.4, "hose_1": 0.5, "chamber_angle_2": 0.05, "marker_offset_z": 1e-3}
    robot = load_robot("licher2025").replace(pressure_chain=with_values(**values))
    assert Robot.model_validate(robot.model_dump(mode="json")) == robot
    assert hash(robot) != hash(robot.replace(pressure_chain=with_values()))
    model = make_model("rod", robot)
    nominal = {each.name: each.nominal for each in model.parameters}
    assert {name: nominal[name] for name in values} == values
    assert nominal["hysteresis_1"] == 0.0
    told = with_parameters(robot, ("chamber_angle_2", "hose_3"), (0.02, 0.1))
    expected = {"chamber_angle_2": 0.02, "hose_3": 0.1, "hysteresis_2": 0.4}
    assert expected.items() <= dict(told.pressure_chain.values).items()


def recorded_tips(robot, inputs, period, intervals):
    """A motion of a robot whose tip is seen with 10 um of noise."""
    blank = Recording(inputs, {}, period)
    tips = in_motion(robot, blank, groups_of(robot)[:1], intervals)[TIP_POSITION]
    noisy = tips + 1e-5 * np.random.default_rng(3).standard_normal(tips.shape)
    return replace(blank, outputs={TIP_POSITION: noisy})


def test_a_motion_tells_the_chain_its_model_moved_with():
    """The recording is the chain's own, so that what is found is exact but for the noise."""
    parts = {"hose_time": 0.025, "chamber_angles": True, "marker_offset": True}
    truth = {"hose_1": 0.6, "hose_2": 0.4, "chamber_angle_2": 0.05, "marker_offset_x": 1e-3}
    robot = load_robot("licher2025").replace(pressure_chain=parts)
    true = robot.replace(pressure_chain={**parts, "values": truth}).scaled(bending=0.95)
    inputs = swinging(np.arange(210) / 70.0)
    found = identify_chain(robot, recorded_tips(true, inputs, 1 / 70, 4), 4)
    values = dict(zip(found.names, found.values, strict=True))
    widths = dict(zip(found.names, found.intervals, strict=True))
    assert found.not_excited == ()
    for name, value in values.items():
        if name in truth or name.startswith(("hose", "chamber", "marker")):
            assert abs(value - truth.get(name, 0.0)) < 3.0 * widths[name], name
    assert values["bending_compliance"] == pytest.approx(0.95 * 49.9, rel=1e-3)
    assert found.robot.bending_compliance == pytest.approx(values["bending_compliance"])
    assert dict(found.robot.pressure_chain.values)["hose_1"] == values["hose_1"]


def test_play_is_found_at_the_limit_of_what_stops_can_weigh():
    """Beyond the limit the model has no slope: the fit must not end there and drop the weight."""
    parts = {"hysteresis_radii": (1000.0,)}
    robot = load_robot("licher2025").replace(pressure_chain=parts)
    true = robot.replace(pressure_chain={**parts, "values": {"hysteresis_1": 1.2}})
    inputs = swinging(np.arange(60) / 30.0)
    found = identify_chain(robot, recorded_tips(true, inputs, 1 / 30, 3), 3)
    weights = dict(zip(found.names, found.values, strict=True))
    assert "hysteresis_1" in weights
    for chamber in (1, 2, 3):
        own = weights.get(f"hysteresis_1_of_{chamber}", 0.0)
        assert weights["hysteresis_1"] + own == pytest.approx(0.95, abs=0.02)


def test_the_stages_write_a_chain_beside_the_rods_numbers():
    robot = load_robot("licher2025").replace(pressure_chain={"marker_offset": True})
    true = with_parameters(robot, ("marker_offset_y",), (1e-3,)).scaled(damping=1.2)
    times = np.arange(70) / 70.0
    swing = 1.0 + 0.8 * np.sin(np.outer(times, (9, 7, 5)))
    inputs = 3e4 * np.minimum(3.0 * times, 1.0)[:, None] * swing
    recording = recorded_tips(true, inputs, 1 / 70, 10)
    motion = Samples("a bag", np.zeros(70, np.int64), recording, None)
    found = _of_chain(Identified(robot), motion)
    values = dict(found.robot.pressure_chain.values)
    assert values["marker_offset_y"] == pytest.approx(1e-3, rel=0.01)
    relaxation = found.found["bending_relaxation_time"]
    assert relaxation.value == pytest.approx(1.2 * 0.005, rel=0.02)
    assert found.not_excited == ()
    assert _of_chain(Identified(robot), None).not_excited == (*marker(np.zeros(3)),)


def test_a_marker_is_not_looked_for_without_the_tips_pose(robot, model):
    context = EstimationContext(robot, model, DT)
    told = {"parameters": ("marker_offset_x",), "use_base_wrench": True}
    with pytest.raises(UserError, match="use_tip_pose = False with marker_offset_x: no other sens"):
        ModelFilter(context, ModelEstimatorSettings(use_tip_pose=False, **told))
