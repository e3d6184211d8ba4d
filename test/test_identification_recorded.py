"""Identification from bags and CSV files that a person brings."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy.spatial.transform import Rotation

from softcr_control.reference import signals
from softcr_estimation.identification.mistakes import command_mistakes
from softcr_estimation.identification.signals import QUATERNION_COLUMNS, read_bag, read_csv
from softcr_estimation.identification.stages import (
    Identified,
    Material,
    _from_commands,
    identify,
    read_material,
)
from softcr_estimation.identification.stretches import Samples, calm_of, longest_motion, rests
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_models.identification.identifiable import names_of, parameters_of, with_parameters
from softcr_models.identification.measured_groups import (
    BASE_FORCE,
    BASE_MOMENT,
    TIP_POSITION,
    groups_of,
)
from softcr_models.identification.rod_identification import (
    Recording,
    at_rest,
    identify_static,
    in_motion,
    static_configurations,
)
from softcr_papers.licher2025.studies.identification import hidden_robot
from softcr_runtime.bags.offline_bag import OfflineBag
from softcr_runtime.bags.signals import Signal
from softcr_runtime.blocks.virtual_run import run_blocks
from softcr_runtime.settings.command_line import new_app, run
from softcr_runtime.wire.messages import pressures_to_message
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant
from softcr_simulation.plants import RodPlant
from softcr_studies.loops.closed_loop import open_loop
from softcr_tools import identified_robot
from softcr_tools import identify as command
from softcr_tools.report import report

ROBOT = load_robot("licher2025")
TRUTH = hidden_robot(ROBOT)
INTERVALS, PERIOD = 4, 1 / 70
CHAMBERS = len(ROBOT.chambers)
GROUPS = [each for each in groups_of(ROBOT) if each.fitted]
STATIC_PARAMETERS, LAG_PARAMETERS = names_of(ROBOT, "rest"), names_of(ROBOT, "lag")
(DAMPING,) = names_of(ROBOT, "motion")


def quiet():
    return Console(width=118, record=True)


def write_csv(path, recording, times=None, commands=None, kind="pressure", groups=None, more=None):
    columns = {f"{kind}_{i + 1}": each for i, each in enumerate(recording.inputs.T)}
    for group in groups or GROUPS:
        if group.name in recording.outputs:
            columns |= dict(zip(group.columns, recording.outputs[group.name].T, strict=True))
    if times is not None:
        columns = {"time": times, **columns, "remark": np.full(len(times), np.nan)}
    if commands is not None:
        columns |= {f"command_{i + 1}": commands[:, i] for i in range(CHAMBERS)}
    columns |= more or {}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def statics(pressures):
    return Recording(pressures, at_rest(TRUTH, pressures, GROUPS, INTERVALS)[0])


@pytest.fixture(scope="module")
def motion():
    """2.5 s of the hidden robot, from rest: times, commands, what was measured."""
    times = signals.time_grid(2.5, PERIOD)
    commands = signals.sines(times, CHAMBERS, 30e3, 25e3, (1.0,))
    commands = signals.soft_start(commands, np.zeros(CHAMBERS), times, 0.6)
    commands[times > 1.6] = 0.0
    commands = np.roll(commands, 25, axis=0)
    pressures = TRUTH.pressure_lag.trajectory(np.zeros(CHAMBERS), commands[None, :-1], PERIOD)[0]
    outputs = in_motion(TRUTH, Recording(pressures, {}, PERIOD), GROUPS, INTERVALS)
    return times, commands, Recording(pressures, outputs, PERIOD)


@pytest.fixture(scope="module")
def exact():
    return statics(static_configurations(ROBOT, 2))


@pytest.fixture(scope="module")
def files(motion, exact, tmp_path_factory):
    """Configurations at rest and a motion as CSV, whose clock begins at an odd time."""
    directory = tmp_path_factory.mktemp("csv")
    times, commands, recording = motion
    at_rest = write_csv(directory / "statics.csv", exact)
    return at_rest, write_csv(directory / "motion.csv", recording, times + 12.34, commands)


def test_csv_files_give_the_hidden_robot_and_a_report(files, tmp_path):
    console = quiet()
    found = identified_robot.run(ROBOT, files, tmp_path, INTERVALS, console)
    for names, tolerance in ((STATIC_PARAMETERS, 1e-4), ((DAMPING,), 0.02), (LAG_PARAMETERS, 1e-3)):
        truth = parameters_of(TRUTH, names)
        assert parameters_of(found.robot, names) == pytest.approx(truth, rel=tolerance)
    assert found.not_excited == ()
    assert found.delay == 0.0
    assert max(each.times_noise for each in found.misfits) < 0.1
    told = console.export_text()
    assert "statics, 4 parameters: 0 %, about" in told
    for group in ("tip position", "base force", "base moment"):
        assert re.search(rf"{group} +at rest +\S+ (mm|N|N mm) +\S+ (mm|N|N mm) +\S+", told)
        assert re.search(rf"{group} +in motion", told)
    latest = tmp_path / "latest"
    text = (latest / "identified.yaml").read_text()
    assert "# Values with 95 % confidence intervals" in text
    assert f"bending_compliance: {found.robot.bending_compliance:.6g} +- " in text
    read = load_robot(str(latest / "identified.yaml"))
    assert read == found.robot.replace(description=read.description)
    report = (latest / "report.md").read_text()
    assert "14 configurations at rest, 14 of them different; a motion of 2." in report
    assert "Not excited by the recordings: none." in report
    assert (latest / "motion.png").stat().st_size > 10_000
    assert (latest / "table.json").exists()


def test_what_is_not_excited_keeps_the_first_guess_and_is_named(tmp_path):
    still = np.zeros((10, CHAMBERS))
    path = write_csv(tmp_path / "still.csv", statics(still))
    console = quiet()
    found = identified_robot.run(ROBOT, [path], tmp_path / "results", INTERVALS, console)
    assert set(found.not_excited) == {*STATIC_PARAMETERS, DAMPING, *LAG_PARAMETERS}
    assert found.robot == ROBOT
    report = (tmp_path / "results" / "latest" / "report.md").read_text()
    assert "| bending_compliance | rad/(N m m) | 49.9 | as guessed | not excited |  |" in report
    assert "1 different configurations at rest, 8 are needed" in report
    assert "do not excite tip_mass: it stays as in the file" in console.export_text()


def test_a_motion_alone_gives_what_rests_would_have_given(files):
    found = identify(ROBOT, read_material(files[1:], ROBOT), INTERVALS)
    truth = parameters_of(TRUTH, ("bending_compliance", DAMPING))
    values = [found.found[name].value for name in ("bending_compliance", DAMPING)]
    assert values == pytest.approx(truth, rel=0.03)
    assert "a motion of" in found.found["bending_compliance"].source


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """A plant that rests, moves for two seconds and rests; its bag tells what was played."""
    robot = hidden_robot(ROBOT)
    noise = {"tip_noise": 1e-4, "pressure_noise": 20.0, "force_noise": 0.01, "moment_noise": 2e-4}
    simulated = SimulatedPlant(robot, PlantErrors.noiseless(**noise), intervals=4)
    plant = RodPlant.of(robot, simulated)
    times = signals.time_grid(3.6, PERIOD)
    commands = np.zeros((len(times), CHAMBERS))
    moving = (times > 1.2) & (times < 3.2)
    commands[moving, 0] = 3e4 * np.sin(np.pi * (times[moving] - 1.2)) ** 2
    path = tmp_path_factory.mktemp("bags") / "recorded"
    run_blocks(
        open_loop(robot, plant, commands, len(times), 1 / PERIOD, 0), lambda *_: None, bag=path
    )
    return path


def test_a_bag_gives_rests_motion_and_the_delay_of_its_commands(bag):
    material = read_material([bag], ROBOT)
    assert len(material.static) == 1
    assert material.static.inputs[0] == pytest.approx(0.0, abs=20.0)
    assert 2.2 < len(material.motion) * PERIOD < 3.0
    found = _from_commands(Identified(ROBOT), material.motion)
    assert found.delay == 0.0
    lag = parameters_of(TRUTH, LAG_PARAMETERS)
    assert parameters_of(found.robot, LAG_PARAMETERS) == pytest.approx(lag, rel=0.01)


def test_a_bag_s_csv_file_gives_what_the_bag_gives(bag, tmp_path):
    report(bag, csv=tmp_path / "samples.csv")
    own, read = read_bag(bag, ROBOT), read_csv(tmp_path / "samples.csv", ROBOT)
    assert read.outputs.keys() == own.outputs.keys()
    first = min(own.inputs.stamps[0], own.commands.stamps[0])
    pairs = [(own.inputs, read.inputs), (own.commands, read.commands)]
    pairs += [(own.outputs[name], read.outputs[name]) for name in own.outputs]
    for ours, theirs in pairs:
        assert np.array_equal(ours.stamps - first, theirs.stamps)
        np.testing.assert_allclose(ours.values, theirs.values, rtol=0.0, atol=1e-12)


def swung(x, noise=0.0):
    """Samples of a tip that moves along x by 30 mm."""
    tips = 0.03 * np.stack([x, 0 * x, 0 * x], axis=1)
    tips += noise * np.random.default_rng(0).standard_normal(tips.shape)
    recording = Recording(np.full((len(x), 1), 2e4), {TIP_POSITION: tips}, PERIOD)
    return Samples("here", np.arange(len(x)), recording, None)


def test_rests_and_motions_are_told_apart():
    """Half a second of calm is no configuration; a motion begins where it was calm, and one that
    did not is judged once it has run in."""
    calm, swing = np.zeros(140), np.sin(2 * np.pi * np.arange(210) / 70)
    samples = swung(np.concatenate([calm, swing, calm[:35], swing, calm]), 1e-4)
    found = rests(samples)
    assert found.outputs[TIP_POSITION] == pytest.approx(np.zeros((2, 3)), abs=5e-5)
    assert 110 < longest_motion(samples).stamps[0] <= 140
    assert longest_motion(samples.part(0, 140)) is None
    samples = swung(np.sin(2 * np.pi * np.arange(700) / 70))
    found = longest_motion(samples)
    assert (len(found), found.recording.run_in) == (700, 280)
    assert longest_motion(samples.part(0, 400)) is None


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda text: text.replace("tip_y", "tip_why"), "column tip_y is missing; it has pressure"),
        (lambda text: text.replace("0.0,", "zero,", 1), r"line 2: pressure_1 = '.*zero'"),
        (lambda text: text.splitlines()[0], "a line per sample"),
        (lambda text: text.replace("tip_x", "tip_z", 1), "stands twice"),
        (lambda text: text + "1,2\n", "cells, must be 12"),
        (lambda text: text + "0,1,0,2,0" + ",0" * 9 + "\n", "14 cells, must be 12; decimal commas"),
        (lambda text: "x" + text.replace("\n0.0", "\nzero", 1), "column pressure_1 is missing"),
        (lambda text: text.replace(",", "_"), "no line holds a column name that is known"),
        (lambda text: text.replace(",", ";").replace(".", ",", 4), "has a decimal comma, but oth"),
        (lambda text: "", "is empty"),
    ],
)
def test_a_csv_file_that_cannot_be_used_is_one_line(files, tmp_path, change, match):
    path = tmp_path / "wrong.csv"
    path.write_text(change(files[0].read_text()), encoding="utf-8")
    with pytest.raises(UserError, match=match):
        read_material([path], ROBOT)


DIALECTS = {
    "byte order mark": lambda text: ("\ufeff" + text).encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "Windows": lambda text: ("# Prüfstand\n" + text.replace("\n", "\r\n")).encode("cp1252"),
    "decimal commas": lambda text: text.replace(",", ";").replace(".", ",").encode(),
    "quoted decimal commas": lambda text: "\n".join(
        ",".join(f'"{cell.replace(".", ",")}"' for cell in line.split(","))
        for line in text.splitlines()
    ).encode(),
    "tabs": lambda text: text.replace(",", "\t").encode(),
    "spaces": lambda text: text.replace(",", "  ").encode(),
    "bars": lambda text: text.replace(",", " | ").encode(),
    "names in a comment": lambda text: b"# made by numpy at time 12:30\n# " + text.encode(),
    "a preamble and comments": lambda text: (
        "Take 001\n\n" + text.replace("\n", "\n% calm\n// calm\n", 1)
    ).encode(),
    "a spreadsheet": lambda text: (
        "sep=;\n" + text.replace(",", ";").replace("\n", ";;\n") + ";;;\n"
    ).encode(),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_csv_file_of_any_dialect_says_the_same(files, tmp_path, dialect):
    other = tmp_path / "other.csv"
    other.write_bytes(DIALECTS[dialect](files[0].read_text()))
    first, second = read_csv(files[0], ROBOT), read_csv(other, ROBOT)
    assert np.array_equal(first.inputs, second.inputs)
    assert first.outputs.keys() == second.outputs.keys()
    for name, values in first.outputs.items():
        assert np.array_equal(values, second.outputs[name])


UNITS = {"pressure": ("kPa", 1e3), "tip": ("mm", 1e-3), "moment": ("N mm", 1e-3)}


def test_a_unit_behind_a_column_s_name_is_understood(files, tmp_path):
    first, *lines = files[0].read_text().splitlines()
    names, own = first.split(","), [UNITS.get(each.partition("_")[0]) for each in first.split(",")]
    table = np.array([line.split(",") for line in lines], float)
    table /= [each[1] if each else 1.0 for each in own]
    told = [f"{n} [{unit[0]}]" if unit else n for n, unit in zip(names, own, strict=True)]
    rows = [",".join(map(repr, row)) for row in table.tolist()]
    (tmp_path / "units.csv").write_text("\n".join([",".join(told), *rows]))
    ours, theirs = read_csv(files[0], ROBOT), read_csv(tmp_path / "units.csv", ROBOT)
    np.testing.assert_allclose(theirs.inputs, ours.inputs, rtol=1e-12)
    for name, values in ours.outputs.items():
        np.testing.assert_allclose(theirs.outputs[name], values, rtol=1e-12)
    (tmp_path / "units.csv").write_text(files[0].read_text().replace("tip_x", "tip_x [kPa]"))
    with pytest.raises(UserError, match=r"column 'tip_x \[kPa\]': the unit must be m or mm or cm"):
        read_csv(tmp_path / "units.csv", ROBOT)


def test_columns_of_tendons_are_tensions(tmp_path):
    arm = load_robot("tendon_arm")
    tensions = np.repeat(static_configurations(arm, 1), 2, axis=0)
    still = Recording(tensions, {TIP_POSITION: np.zeros((len(tensions), 3))})
    material = read_material([write_csv(tmp_path / "a.csv", still, kind="tension")], arm)
    assert np.array_equal(material.static.inputs, tensions)
    assert material.different_rests == len(tensions) // 2  # 0.3 N apart, where 2 kPa would hide it
    with pytest.raises(UserError, match="column tension_1, tension_2, tension_3, tension_4 is mis"):
        read_material([write_csv(tmp_path / "b.csv", still)], arm)


def test_a_tendon_arm_at_rest_moves_by_tensions_alone():
    """A hundredth of a newton is motion where the range is half a newton."""
    arm = load_robot("tendon_arm")
    inputs = np.zeros((140, 4))
    inputs[:, 0] = 0.02 * np.sin(np.arange(140))
    recording = Recording(inputs, {TIP_POSITION: np.zeros((140, 3))}, PERIOD)
    assert len(rests(Samples("here", np.arange(140), recording, None))) == 1
    moving = Samples("here", np.arange(140), recording, None, calm_of(arm))
    assert len(rests(moving)) == 0


def test_recordings_that_cannot_be_used_are_one_line(bag, motion, tmp_path):
    with pytest.raises(UserError, match=r"actuators .*, but four_chambers has east, north"):
        read_bag(bag, load_robot("four_chambers"))
    made = OfflineBag()
    for stamp in (10, 20):
        message = pressures_to_message(np.zeros(CHAMBERS), ROBOT.chamber_names, stamp)
        made.add("pressure/state", stamp, message)
    made.write(tmp_path / "bag")
    times, _, recording = motion
    backward = write_csv(tmp_path / "backward.csv", recording, times[::-1])
    few = write_csv(tmp_path / "few.csv", recording.rows(slice(9)), times[:9])
    for path, says in (
        (tmp_path / "bag", "no message on topic mocap/tip/pose or mocap"),
        (backward, "column time must grow"),
        (few, "never recorded together for 1 s"),
    ):
        with pytest.raises(UserError, match=says):
            read_material([path], ROBOT)


def test_the_command_explains_the_columns_and_needs_a_recording(
    files, tmp_path, monkeypatch, capsys
):
    app = new_app("softcr", "")
    app.command(command.identify)
    assert run(app, ["identify", "--help"]) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in ("tip_x", "command_1", "pressure/sent", "--robot"))
    assert run(app, ["identify"]) == 2
    told = {}
    monkeypatch.setattr(command, "compile_kernels", lambda console: None)
    monkeypatch.setattr(identified_robot, "run", lambda *given: told.update(given=given[:3]))
    assert run(app, ["identify", *map(str, files), "--results", str(tmp_path)]) == 0
    assert told["given"] == (ROBOT, list(files), tmp_path / "identification")


def test_a_silent_sensor_leaves_its_cells_empty(files, tmp_path):
    lines = files[0].read_text().splitlines()
    lines[1] = ",".join([*lines[1].split(",")[:3], "", "nan", "", *lines[1].split(",")[6:]])
    (tmp_path / "gaps.csv").write_text("\n".join(lines))
    whole, gaps = (read_csv(path, ROBOT) for path in (files[0], tmp_path / "gaps.csv"))
    assert np.isnan(gaps.outputs[TIP_POSITION][0]).all()
    assert np.array_equal(gaps.outputs[TIP_POSITION][1:], whole.outputs[TIP_POSITION][1:])
    fits = [identify_static(ROBOT, each, INTERVALS) for each in (whole, gaps)]
    assert fits[1].values == pytest.approx(fits[0].values, rel=1e-4)


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (lambda t: {"time": 1e3 * t}, "14.2857 s between lines, .* seem to be in ms"),
        (lambda t: {"time": 1e9 * t}, "seem to be in ns"),
        (lambda t: {"time": t, "tip_roll": 90.0 + t, "tip_pitch": t, "tip_yaw": t}, "in degrees"),
        (lambda t: {"time": t, **dict.fromkeys(QUATERNION_COLUMNS, t)}, "must be 1"),
    ],
)
def test_times_and_angles_in_other_units_are_told(motion, tmp_path, columns, match):
    times, _, recording = motion
    path = write_csv(tmp_path / "units.csv", recording, more=columns(times))
    with pytest.raises(UserError, match=match):
        read_csv(path, ROBOT)


def turned(axis, degrees):
    return Rotation.from_rotvec(np.radians(degrees) * np.eye(3)[axis]).apply


def outputs(change, *names):
    def mistaken(recording):
        changed = {name: change(recording.outputs[name]) for name in names}
        return replace(recording, outputs={**recording.outputs, **changed})

    return mistaken


def tip(change):
    return outputs(change, TIP_POSITION)


def inputs(change):
    return lambda recording: replace(recording, inputs=change(recording.inputs))


MISTAKES = {
    "mm": (tip(lambda v: 1e3 * v), "seem to be in mm"),
    "swapped": (tip(lambda v: v[:, [0, 2, 1]]), "tip_y and tip_z .* swapped$"),
    "y up": (tip(turned(0, -90)), "hold x, z, -y .*turned by 90 .* about x"),
    "mirrored": (tip(lambda v: v * [-1, 1, 1]), "tip_x seems .* opposite sign"),
    "turned": (tip(turned(2, 25)), "turned by -25 degrees about z$"),
    "ambiguous": (tip(turned(2, 120)), "about z, or the inputs .* another order"),
    "origin": (tip(lambda v: np.add(v, [0.04, 0, 0])), r"origin, at \(-40, 0, -?\d\)"),
    "kPa": (inputs(lambda v: v / 1e3), "pressures seem to be in kPa"),
    "absolute": (inputs(lambda v: v + 101325.0), "pressures seem to be absolute"),
    "order": (inputs(lambda v: v[:, [1, 0, 2]]), "hold chamber_2, chamber_1, chamber_3"),
    "N mm": (outputs(lambda v: 1e3 * v, BASE_MOMENT), "base moment: it seems to be in N mm$"),
    "kgf": (outputs(lambda v: v / 9.8, BASE_FORCE), "base force: .* in kilogram-force$"),
    "sign": (outputs(np.negative, BASE_FORCE, BASE_MOMENT), "force: .* opposite .* moment: .* opp"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_of_the_robot_is_refused_and_the_mistake_is_named(exact, tmp_path, mistake):
    mistaken, match = MISTAKES[mistake]
    draw = np.random.default_rng(0)
    measured = {
        each.name: exact.outputs[each.name] + each.noise * draw.standard_normal((len(exact), 3))
        for each in GROUPS
    }
    path = write_csv(tmp_path / "wrong.csv", mistaken(replace(exact, outputs=measured)))
    with pytest.raises(UserError, match=match):
        identified_robot.run(ROBOT, [path], tmp_path / "results", INTERVALS, quiet())
    assert not list((tmp_path / "results").glob("*"))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda asked: asked / 1e5, "commands of pressures seem to be in bar$"),
        (lambda asked: asked / 1e3, "commands of pressures seem to be in kPa$"),
        (lambda asked: asked[:, [2, 0, 1]], "command_1, command_2, command_3 hold chamber_3, cham"),
    ],
)
def test_mistakes_in_commands_are_named(motion, change, match):
    times, _, recording = motion
    stamps = np.round(1e9 * times).astype(np.int64)
    phases = 2.0 * np.pi * np.arange(CHAMBERS) / CHAMBERS
    asked = recording.inputs[:, :1] * (1.0 + 0.9 * np.sin(2 * np.pi * times[:, None] + phases))
    moved = replace(recording, inputs=asked)
    moved = replace(moved, outputs=in_motion(ROBOT, moved, GROUPS, INTERVALS))
    samples = Samples("here", stamps, moved, Signal(stamps, change(asked)))
    material = Material(recording.rows(slice(0)), samples)
    with pytest.raises(UserError, match=match):
        identify(ROBOT, material, INTERVALS)
    assert not command_mistakes(ROBOT, asked, asked)


def test_what_does_not_fit_is_written_only_if_the_person_says_so(exact, tmp_path):
    path = write_csv(tmp_path / "swapped.csv", tip(lambda v: v[:, [0, 2, 1]])(exact))
    identified_robot.run(ROBOT, [path], tmp_path / "results", INTERVALS, quiet(), anyway=True)
    text = (tmp_path / "results" / "latest" / "identified.yaml").read_text()
    assert "# Warning: tip_y and tip_z seem to be swapped" in text


@pytest.mark.parametrize(
    ("robot", "names"),
    [
        ("licher2025", {TIP_POSITION}),
        ("two_segments", {TIP_POSITION, "middle position"}),
        ("two_segments", {"middle position"}),
    ],
)
def test_positions_alone_and_markers_on_the_body_are_enough(tmp_path, robot, names):
    guess = load_robot(robot)
    # what a marker does not feel stays as guessed, so the truth must not differ there
    stiff = "bending_compliance" if TIP_POSITION in names else "bending_compliance_1"
    sought = tuple(n for n in names_of(guess, "rest") if n.startswith(stiff))
    truth = with_parameters(guess, sought, 1.08 * parameters_of(guess, sought))
    groups = [each for each in groups_of(guess) if each.name in names]
    pressures = static_configurations(guess, 1 if robot == "two_segments" else 3)
    seen, _ = at_rest(truth, pressures, groups, INTERVALS)
    draw = np.random.default_rng(0)
    noisy = {name: v + 1e-5 * draw.standard_normal(v.shape) for name, v in seen.items()}
    path = write_csv(tmp_path / "alone.csv", Recording(pressures, noisy), groups=groups)
    material = read_material([path], guess)
    assert set(material.static.outputs) == names
    found = identify(guess, material, INTERVALS)
    assert "bending_compliance" in " ".join(found.found)
    for name, one in found.found.items():
        (right,) = parameters_of(truth, (name,))
        assert one.value == pytest.approx(right, rel=2.0 * one.width)
    assert {each.group.name for each in found.misfits} == names
    assert max(each.residual for each in found.misfits) < 2e-5
