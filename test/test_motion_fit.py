"""Unknowns of an arm recorded in motion: found again within their deviations, judged by what is
held out; a candidate that is lost does not end the search."""

import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from softcr_estimation.identification.motion_errors import BANDS, by_band
from softcr_estimation.identification.stages import write_robot
from softcr_models import load_robot
from softcr_models.chain.chain_model import ChainModel
from softcr_models.identification.actuation import (
    FAMILIES_IN_MOTION,
    LAG_RATE,
    VENTING_TIME,
    actuation_as,
    chain_of,
)
from softcr_models.identification.measured_groups import groups_of
from softcr_models.identification.motion_fit import (
    Motion,
    MotionFit,
    Simulation,
    Window,
    distances,
    loaded,
    motion_fit,
)
from softcr_models.identification.next_motion import next_motion
from softcr_models.identification.rod_identification import Work
from softcr_models.identification.unknowns import unknowns_of
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.description import rod_inputs
from softcr_tools.cli import main
from softcr_tools.moving_arm import in_motion, with_chain

TENDONS = {
    "stiffness": 0.2, "gain_1": 0.1, "gain_2": -0.1, "base_x": 3e-3, "delay": 0.04,
    "lag_rate": -0.5, "lag_damping": -0.3, "relaxation": 0.5,
}  # fmt: skip
CHAMBERS = TENDONS | {"hysteresis_2": 0.08, "creep": 0.05}
PERIOD, NOISE = 0.02, 1e-4
ROD, ARM, TRUNK = (load_robot(name) for name in ("licher2025", "tendon_arm", "asl_trunk"))


def moved(robot, seed, seconds=10.0):
    """(T, m) sums of sines, within half of the inputs' range."""
    random, times = np.random.default_rng(seed), PERIOD * np.arange(round(seconds / PERIOD))
    limits, inputs = rod_inputs(robot), []
    for _ in robot.actuators:
        waves = sum(
            np.sin(2.0 * np.pi * hertz * random.uniform(0.7, 1.3) * times + random.uniform(0.0, 6))
            for hertz in (0.15, 0.4, 0.9, 1.7)
        )
        inputs.append(np.clip(0.5 + 0.2 * waves, 0.0, 1.0))
    return 0.5 * np.max(limits.high) * np.stack(inputs, axis=1)


def recorded(robot, values, seed, payload=0.0, seconds=10.0):
    """A motion of a fine rod under what acts by Euler's method on delay and lag, in a frame turned
    by hand."""
    inputs = moved(robot, seed, seconds)
    made = actuation_as(robot, values)
    acts = made.acting(inputs, PERIOD)
    rod = CosseratRod(loaded(made.recorded.robot, payload), 15)
    model = RodPrediction(rod, substeps=4, single_precision=False)
    state, numbers, tips = rod.equilibrium(acts[0])[None], model.nominal_parameters[None], []
    for row in range(len(acts)):
        if row:
            state = model.step(state, acts[row - 1 : row], acts[row : row + 1], numbers, PERIOD)
        tips.append(rod.tip_pose(state[0])[:3, 3])
    noise = NOISE * np.random.default_rng(seed + 1).standard_normal((len(acts), 3))
    turned = Rotation.from_rotvec(made.recorded.rotation).apply(tips)
    seen = turned + made.recorded.position + noise
    return Motion(f"trial {seed}", inputs, {"tip position": seen}, PERIOD, payload)


def tip_of(robot):
    return tuple(each for each in groups_of(robot) if each.name == "tip position")


OF_TRUNK = tuple(each for each in groups_of(TRUNK) if each.unit == "m")


def check_found(fit, true):
    """All within their deviations."""
    for unknown, deviation in zip(fit.unknowns, fit.deviations, strict=True):
        off = fit.values[unknown.name] - true.get(unknown.name, 0.0)
        # stiffness and gains together hardly change what is seen
        assert abs(off) < 4.0 * deviation + 0.1 * unknown.deviation, unknown.name


def held_out(robot, true, *actuations):
    """A simulation of a motion that no fit has seen, and how far actuations are off there [m]."""
    simulation = Simulation(robot, [recorded(robot, true, 7)], tip_of(robot))
    seen, _ = simulation.along(list(actuations), simulation.whole)
    off = distances(seen - simulation.measured(simulation.whole)).mean(axis=(1, 2, 3))
    return simulation, *off


def test_the_next_motion_moves_what_is_known_least_and_says_how_well_it_is_known_then():
    groups = tip_of(ARM)
    unknowns = unknowns_of(ARM, ("gains",), groups, FAMILIES_IN_MOTION)
    names = [each.name for each in unknowns]
    values = dict.fromkeys(names, 0.0)
    for least in ("gain_2", "gain_4"):
        known = np.array([each.deviation if each.name == least else 1e-4 for each in unknowns])
        fit = MotionFit(
            unknowns, values, np.diag(known**2), {"tip position": NOISE},
            actuation_as(ARM, values), 0.3, True, 0, 0,
        )  # fmt: skip
        motion = next_motion(ARM, fit, groups, PERIOD)
        place, limits = names.index(least) - names.index("gain_1"), rod_inputs(ARM)
        assert motion.words.startswith(limits.names[place]), motion.words
        moved = np.ptp(motion.inputs, axis=0) > 0.1 * limits.range
        assert moved.tolist() == [k == place for k in range(limits.size)]
        steps = np.diff(motion.inputs, axis=0) / motion.period
        assert (np.abs(steps) <= 1.001 * limits.rate).all()
        assert ((motion.inputs >= limits.low) & (motion.inputs <= limits.high)).all()
        # as two recordings of it tell, whose gains are a deviation of `left` apart
        left = motion.left[names.index(least)]
        assert left < 0.1 * known[names.index(least)]
        simulation = Simulation(ARM, [Motion("", motion.inputs, {}, PERIOD)], groups)
        pair = [actuation_as(ARM, values | {least: change}) for change in (0.0, left)]
        seen, _ = simulation.along(pair, simulation.whole)
        apart = distances(seen[1] - seen[0])[0, :, 0]
        independent = motion.period * len(apart) / 0.25
        assert np.sqrt((apart**2).mean() * independent) == pytest.approx(NOISE, rel=0.3)


@pytest.mark.parametrize(
    ("name", "true", "more"),
    [
        ("tendon_arm", TENDONS, ()),
        pytest.param("licher2025", CHAMBERS, ("hysteresis", "creep"), marks=pytest.mark.later),
    ],
)
def test_what_acted_and_how_late_is_found_again(name, true, more):
    robot = load_robot(name)
    families = ("stiffness", "gains", "registration", "delay", "lag", "relaxation", *more)
    groups = tip_of(robot)
    unknowns = unknowns_of(robot, families, groups, FAMILIES_IN_MOTION)
    told = []
    work = Work(lambda work: told.append(work.done / max(work.expected, 1e-9)))
    fit = motion_fit(robot, [recorded(robot, true, k) for k in (0, 1)], groups, unknowns, work)
    assert max(told) == pytest.approx(1.0)
    assert min(np.diff(told)) > -0.3
    check_found(fit, true)
    for unknown in ("delay", "lag_rate", "lag_damping"):
        assert abs(fit.values[unknown] - true[unknown]) < (5e-3 if unknown == "delay" else 0.05)
    simulation, found, guessed = held_out(robot, true, fit.actuation, actuation_as(robot, {}))
    assert found < 3.0 * NOISE
    assert guessed > 10.0 * found
    near, measured = simulation.from_true_starts(fit.actuation, fit.noise, fit.memory, 0.5, 1.0)
    assert np.nanmean(distances(near - measured)) < 3.0 * NOISE


def test_a_true_start_mends_what_the_model_has_wrong():
    """Gains are off by 20 %: from the beginning of a trial the tip is far off, not from states that
    agree with what was measured."""
    true, groups = {"gain_1": 0.2, "gain_2": -0.2}, tip_of(ROD)
    simulation = Simulation(ROD, [recorded(ROD, true, 3)], groups)
    guess = actuation_as(ROD, {})
    seen, _ = simulation.along([guess], simulation.whole)
    whole = np.nanmean(distances(seen[0] - simulation.measured(simulation.whole)))
    near, measured = simulation.from_true_starts(guess, {"tip position": 1e-3}, 2.0, 0.5, 0.5)
    assert near.shape == measured.shape
    assert near.shape[1] == 25
    first = np.nanmean(distances(near - measured)[:, 0])
    assert first < 0.5 * whole
    assert np.nanmean(distances(near - measured)) < 0.7 * whole


def test_a_true_start_keeps_what_lasts():
    """The cameras' frame is 30 mm beside that of the fit, and errors are soon forgotten."""
    motion, groups = recorded(ROD, {}, 3), tip_of(ROD)
    moved_by = {name: seen + np.array([0.03, 0, 0]) for name, seen in motion.outputs.items()}
    simulation = Simulation(ROD, [replace(motion, outputs=moved_by)], groups)
    told = actuation_as(ROD, {}), {"tip position": 1e-3}, 0.05, 0.5, 0.5
    known = simulation.from_true_starts(*told, pushed=False)
    off = distances(np.subtract(*known))[:, -1, 0]
    assert off[0] < 0.7 * 0.03
    assert off[-1] < 0.3 * 0.03


@pytest.mark.later
def test_chambers_far_from_where_the_guess_has_them_are_found():
    true, groups = {"angle_1": 1.7, "angle_2": -1.6, "angle_3": 0.1}, tip_of(ROD)
    unknowns = unknowns_of(ROD, ("stiffness", "directions"), groups, FAMILIES_IN_MOTION)
    fit = motion_fit(ROD, [recorded(ROD, true, 2)], groups, unknowns)
    for name in true:
        assert fit.values[name] == pytest.approx(true[name], abs=0.03)


def test_another_day_tells_what_was_set_anew_and_keeps_the_rest():
    """Cameras were turned by a right angle, tendons wound on; the rod is as it was."""
    groups = tip_of(ARM)
    known = {"stiffness": 0.3, "base_x": 4e-3, "base_turn_z": 0.2}
    true = known | {"base_y": -5e-3, "base_turn_z": 0.2 + 0.5 * np.pi, "offset_1": 0.02}
    unknowns = unknowns_of(ARM, ("offsets", "registration"), groups)
    fit = motion_fit(ARM, [recorded(ARM, true, 2)], groups, unknowns, known=known)
    assert fit.values["stiffness"] == known["stiffness"]
    check_found(fit, true)
    assert abs(fit.values["base_turn_z"] - true["base_turn_z"]) < 0.02
    _, found, before = held_out(ARM, true, fit.actuation, actuation_as(ARM, known))
    assert found < 3.0 * NOISE < 0.1 * before


@pytest.mark.later
def test_gains_of_motors_are_in_their_spools():
    """A spool that is a fifth larger is one whose motor turns a fifth further."""
    inputs = moved(TRUNK, 3, 1.0)
    larger, own = actuation_as(TRUNK, {"gain": np.log(1.2)}), actuation_as(TRUNK, {})
    np.testing.assert_array_equal(larger.acting(inputs, PERIOD), inputs)
    paths = []
    for actuation, levels in ((larger, inputs), (own, 1.2 * inputs), (own, inputs)):
        alone = Simulation(TRUNK, [Motion("", levels, {}, PERIOD)], OF_TRUNK)
        paths.append(alone.along([actuation], alone.whole)[0])
    found, expected, smaller = paths
    assert np.abs(found - expected).max() < 1e-6
    assert np.abs(smaller - expected).max() > 1e-3


@pytest.mark.later
def test_true_starts_of_a_robot_with_motors():
    """What a rod recorded of itself is predicted from its own true starts."""
    inputs, own = moved(TRUNK, 3, 6.0), actuation_as(TRUNK, {})
    alone = Simulation(TRUNK, [Motion("", inputs, {}, PERIOD)], OF_TRUNK)
    seen, _ = alone.along([own], alone.whole)
    outputs = {each.name: seen[0, 0, :, g] for g, each in enumerate(OF_TRUNK)}
    simulation = Simulation(TRUNK, [Motion("", inputs, outputs, PERIOD)], OF_TRUNK)
    near, measured = simulation.from_true_starts(own, dict.fromkeys(outputs, 1e-3), 1.0, 0.5, 0.5)
    assert len(near) > 1
    assert np.ptp(measured, axis=(0, 1)).max() > 5e-3
    assert distances(near - measured).max() < 1e-6


@pytest.mark.later
def test_several_payloads_of_one_robot_tell_its_stiffness():
    true, groups = {"stiffness": 0.3, "tip_mass": 0.03}, tip_of(ROD)
    motions = [recorded(ROD, true, 0, payload, 6.0) for payload in (0.0, 0.06)]
    unknowns = unknowns_of(ROD, ("stiffness", "tip_mass"), groups)
    fit = motion_fit(ROD, motions, groups, unknowns)
    for unknown in unknowns:
        off = fit.values[unknown.name] - true[unknown.name]
        assert abs(off) < 0.15 * unknown.deviation, unknown.name


def test_a_rod_that_is_lost_has_a_large_finite_error_and_the_fit_goes_on():
    groups, motion = tip_of(ROD), recorded(ROD, {"stiffness": 0.2}, 0, seconds=12.0)
    wild = Motion("wild", motion.inputs.copy(), motion.outputs, PERIOD)
    wild.inputs[:150, 0] = 5e6  # under such pressure there is no steady state
    fit = motion_fit(ROD, [wild], groups, unknowns_of(ROD, ("stiffness",), groups))
    assert 0 < fit.lost < fit.windows
    assert abs(fit.values["stiffness"] - 0.2) < 0.02


def test_what_is_no_robot_is_a_candidate_that_is_lost():
    motion = recorded(ROD, {}, 0, seconds=4.0)
    simulation = Simulation(ROD, [motion], tip_of(ROD))
    candidates = [None, actuation_as(ROD, {})]
    for found in simulation.along(candidates, [Window(0, 0, 50, 0)], kept=[9]):
        assert np.isnan(found[0]).all()
        assert np.isfinite(found[1]).all()


def test_weights_of_stops_are_those_that_a_chain_takes():
    """Together at most as much as leaves something of the inputs, and none below zero."""
    inputs = moved(ROD, 3, 2.0)
    found = actuation_as(ROD, {"hysteresis_1": -0.1, "hysteresis_2": 0.6, "hysteresis_3": 0.6})
    assert found.weights == pytest.approx((0.0, 0.475, 0.475))
    values = {f"hysteresis_{j + 1}": weight for j, weight in enumerate((0.0, 0.6, 0.6))}
    chain = with_chain(found).pressure_chain.model_copy(update={"values": tuple(values.items())})
    model = ChainModel(RodPrediction(CosseratRod(ROD, 2)), chain)
    past = model.inputs.memory.along(model.inputs.memory.begin(inputs[0]), inputs[None], PERIOD)
    levels = np.concatenate((inputs, past[0]), axis=1)[None]
    acts = model.acting_pressures(levels, model.nominal_parameters[None])[0]
    np.testing.assert_allclose(found.acting(inputs, PERIOD), acts, atol=1e-6)


@pytest.mark.parametrize("name", ["tendon_arm", "asl_trunk"])
def test_friction_of_tendons_is_told_beside_the_robot_file(name):
    """It holds back what is pulled, and pulls on where it is let go."""
    robot = load_robot(name)
    made = actuation_as(robot, {"hysteresis_2": 0.3})
    period, high = 0.01, float(np.max(rod_inputs(robot).high))
    wave = 0.25 * high * (1.0 - np.cos(2.0 * np.pi * period * np.arange(201)))
    acts = made.acting(np.tile(wave[:, None], (1, len(robot.quantities))), period)[:, 0]
    held = acts - wave
    assert held[40] < -1e-3 * high < 1e-3 * high < held[80]
    assert held[40] == pytest.approx(-0.3 * made.radii[1])
    assert (acts >= 0.0).all()
    assert with_chain(made).pressure_chain is None
    told = in_motion(made)
    assert told["hysteresis_weights"] == [0.0, 0.3, 0.0]
    assert told["hysteresis_radii"] == list(made.radii)


def test_a_chamber_vents_by_bernoullis_law():
    """It rises with its reading, falls as the square of what is left of the time in which it
    empties, and ends where the reading is."""
    period = 2e-3
    made = actuation_as(ROD, {"venting": np.log(2.0 / VENTING_TIME)})
    times = np.arange(0, 4, period)
    high, low = 5e4, 1e4
    readings = np.where((times > 0.5) & (times < 1.0), high, low)[:, None] * np.ones(3)
    found = made.acting(readings, period)[:, 0]
    np.testing.assert_array_equal(found[times < 1.0], readings[times < 1.0, 0])
    whole = rod_inputs(ROD).high[0]
    left = np.maximum(0.0, np.sqrt((high - low) / whole) - (times - 1.0) / 2.0)
    expected = low + whole * left**2
    np.testing.assert_allclose(found[times >= 1.0], expected[times >= 1.0], atol=4e-3 * high)
    assert found[-1] == low
    assert unknowns_of(ARM, ("venting",), (), FAMILIES_IN_MOTION) == ()


def test_a_lag_is_that_of_its_equation():
    """A step of the inputs through delay and lag, against a damped oscillator's closed form."""
    made = actuation_as(ARM, {"delay": 0.1, "lag_rate": np.log(8.0 / LAG_RATE),
                                "lag_damping": np.log(0.4)})  # fmt: skip
    times = PERIOD * np.arange(200)
    inputs = np.repeat((times >= 1.0)[:, None] * 0.2, 4, axis=1)
    found = made.acting(inputs, PERIOD)[:, 0]
    # the step is a ramp over a period: its middle is the step's time
    late = times - 1.0 - 0.1 + 0.5 * PERIOD
    w, d = 8.0, 0.4
    own = w * np.sqrt(1.0 - d * d)
    answer = 1.0 - np.exp(-d * w * late) * (np.cos(own * late) + d * w / own * np.sin(own * late))
    np.testing.assert_allclose(found, np.where(late > 0.0, 0.2 * answer, 0.0), atol=2e-3)


def test_an_input_that_curves_acts_more_at_its_highest():
    made = actuation_as(ARM, {"curve_1": 0.2, "curve_2": -0.1})
    found = made.acting(np.full((3, 4), 0.5), PERIOD)  # its limit [N]
    np.testing.assert_allclose(found, np.tile([0.6, 0.45, 0.5, 0.5], (3, 1)))
    half = made.acting(np.full((3, 4), 0.25), PERIOD)
    np.testing.assert_allclose(half[:, 0], 0.275)


def test_hysteresis_and_creep_are_those_of_the_robot_file_that_is_written():
    made = actuation_as(ROD, {"hysteresis_1": 0.1, "creep": 0.05})
    chain = with_chain(made).pressure_chain
    assert dict(chain.values) == {
        "hysteresis_1": 0.1, "hysteresis_2": 0.0, "hysteresis_3": 0.0, "creep": 0.05,
    }  # fmt: skip
    assert chain.hysteresis_radii == made.radii
    assert chain_of(actuation_as(ROD, {})) is None


def test_what_the_past_of_a_trial_has_left_is_found_from_its_first_positions():
    """Chambers that were pressed hard before keep some of their stretch: wide stops that begin at
    their lower ends."""
    groups = tip_of(ROD)
    actuation = actuation_as(ROD, {"hysteresis_3": 0.4})
    ramp = np.minimum(np.arange(150) / 75.0, 1.0)[:, None]
    inputs = np.max(rod_inputs(ROD).high) * (0.1 + 0.15 * ramp * [1.0, 0.0, 0.0])
    begun = np.array([-0.9, -0.9, 0.2])
    truth = Simulation(ROD, [Motion("", inputs, {}, PERIOD)], groups)
    truth._begun[0] = begun
    seen = truth.along([actuation], truth.whole)[0][0, 0, :, 0]
    motion = Motion("", inputs, {groups[0].name: seen}, PERIOD)
    simulation = Simulation(ROD, [motion], groups)
    off = []
    for _ in range(2):
        found = simulation.along([actuation], simulation.whole)[0][0, 0, :, 0]
        off.append(np.linalg.norm(found - seen, axis=1).mean())
        simulation.remember(actuation)
    assert off[1] < 0.1 * off[0]
    assert off[0] > 2e-3
    # what all chambers have alike stretches this rod, by too little to be seen
    bends = simulation._begun[0] - simulation._begun[0].mean()
    assert bends == pytest.approx(begun - begun.mean(), abs=0.1)


def test_errors_by_frequency_are_those_of_their_sines():
    times = 0.01 * np.arange(1000)
    values = np.zeros((1000, 3))
    values[:, 0] = 2.0 + 3.0 * np.sin(2.0 * np.pi * 0.5 * times)
    values[:, 2] = 1.0 * np.sin(2.0 * np.pi * 3.0 * times)
    values[100:103] = np.nan
    found = by_band(values, 0.01)
    assert len(found) == len(BANDS) + 1
    np.testing.assert_allclose(found[:2], [2.0, 3.0 / np.sqrt(2.0)], rtol=0.02)
    np.testing.assert_allclose(found[4], 1.0 / np.sqrt(2.0), rtol=0.02)


def test_the_command_fits_motions_of_a_foreign_file(tmp_path, capsys):
    arrays = {"rate": 1.0 / PERIOD}
    for name, seed in (("a", 0), ("b", 1), ("c", 2)):
        motion = recorded(ARM, TENDONS, seed, seconds=8.0)
        arrays |= {f"{name}_u": motion.inputs, f"{name}_y": 1e3 * motion.outputs["tip position"]}
    np.savez(tmp_path / "lab.npz", **arrays)
    write_robot(ARM, tmp_path / "arm.yaml")
    command = ["identify", str(tmp_path / "lab.npz"), "--robot", str(tmp_path / "arm.yaml")]
    assert main([*command, "--explain"]) == 0
    proposed = capsys.readouterr().out
    content = yaml.safe_load(proposed)
    for each in content["inputs"]:
        each["unit"] = "N"
        each.pop("gain", None)
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(content))
    words = [
        *command, "--map", str(tmp_path / "map.yaml"), "--motion", "--find",
        "stiffness,gains,registration,delay,lag,relaxation", "--hold-out", "c",
        "--results", str(tmp_path / "results"),
    ]  # fmt: skip
    assert main(words) == 0
    said = " ".join(capsys.readouterr().out.split())
    whole = said.partition("held out: c: tip position ")[2]
    assert float(whole.split()[0]) < 0.4
    assert "off over 2 s from" in said
    assert "off over 0.5 s from" in said
    latest = tmp_path / "results/identification/latest"
    recorded_as = yaml.safe_load((latest / "recorded.yaml").read_text())
    assert recorded_as["delay"] == pytest.approx(0.04, abs=5e-3)
    assert recorded_as["lag_rate"] == pytest.approx(LAG_RATE * np.exp(-0.5), rel=0.05)
    assert load_robot(str(latest / "identified.yaml")).name == ARM.name
    assert (latest / "motion.png").is_file()
    assert "lag_rate" in (latest / "report.md").read_text()


def csv_of(folder, kind, inputs, tips):
    """The path of a file of a motion."""
    names = [f"{kind}_{k + 1}" for k in range(inputs.shape[1])]
    rows = np.hstack((PERIOD * np.arange(len(tips))[:, None], inputs, tips))
    header = ",".join(["time", *names, "tip_x", "tip_y", "tip_z"])
    np.savetxt(folder / "run.csv", rows, delimiter=",", header=header, comments="")
    return str(folder / "run.csv")


@pytest.mark.later
def test_columns_that_are_swapped_are_named(tmp_path, capsys):
    motion = recorded(ROD, {"delay": 0.03}, 0, seconds=5.0)
    path = csv_of(tmp_path, "pressure", motion.inputs, motion.outputs["tip position"][:, ::-1])
    words = [path, "--motion", "--find", "stiffness,registration,delay"]
    assert main(["identify", *words, "--results", str(tmp_path / "results")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "the robot does not fit: tip position is" in said
    assert "tip_x and tip_z seem to be swapped" in said


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--motion"], "--motion: only with --find"),
        (["--map", "m.yaml"], "--map: only with --find"),
        (["--find", "delay"], "delay: not to be found; allowed are stiffness"),
        (["--find", "drift", "--motion"], "drift: not to be found; .* creep"),
    ],
)
def test_options_that_do_not_go_together_are_a_line(tmp_path, capsys, words, line):
    path = csv_of(tmp_path, "tension", np.full((200, 4), 0.1), np.full((200, 3), 0.05))
    assert main(["identify", path, "--robot", "tendon_arm", *words]) == 2
    said = capsys.readouterr().err
    assert re.search(line, " ".join(said.split()))
