"""Commissioning on virtual benches with planted mistakes: each is named, and the files are right.

What a bench really is comes from the mistakes that were planted, never from what was found.
"""

import os
import pty
import sys

import numpy as np
import pinocchio as pin
import pytest
from kit.bench import stopping_station
from kit.processes import until

from softcr_hardware.commissioning.bench import Question
from softcr_hardware.commissioning.drive import HIGHEST, Drive
from softcr_hardware.commissioning.lead import lead
from softcr_hardware.commissioning.operators import TerminalOperator, single_keys
from softcr_hardware.commissioning.record import Record, load_record
from softcr_hardware.commissioning.session import Session
from softcr_hardware.commissioning.steps import STEPS
from softcr_hardware.commissioning.virtual_bench import VirtualBench, VirtualOperator
from softcr_hardware.commissioning.whole import good
from softcr_hardware.commissioning.writing import write_files
from softcr_hardware.emulation.bench_mistakes import BenchMistakes, some_mistakes
from softcr_hardware.emulation.chambers import ChamberErrors
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.force_torque.mounting import load_mounting
from softcr_hardware.optitrack.calibration import load_calibration
from softcr_models.errors import UserError
from softcr_models.robots.robot import load_robot
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant

ROBOT = load_robot("licher2025")
STATION = load_station("licher2025")
CALIBRATION = load_calibration("licher2025")
NAMES = ROBOT.chamber_names
ERRORS = ChamberErrors(
    fill_gain=1.1, exhaust_gain=0.9, dead_band=0.03, hysteresis=0.01, lag=0.001, output_bits=12
)
OFFSETS = {"chamber_1": 0.04, "chamber_2": -0.03, "chamber_3": 0.02}
DAILY = tuple(step for step in STEPS if step.daily)


def bench_with(mistakes=None, errors=ERRORS, station=None, calibration=None, seed=0):
    mistakes = mistakes or BenchMistakes()
    offsets = OFFSETS | mistakes.sensor_offsets
    mistakes = mistakes.model_copy(update={"sensor_offsets": offsets})
    of_plant = PlantErrors.noiseless(
        bending_factor=1.1, tip_mass_factor=1.05, tip_noise=1e-4, force_noise=0.02,
        moment_noise=5e-4,
    )  # fmt: skip
    plant = SimulatedPlant(ROBOT, of_plant, seed, intervals=6)
    truth = mistakes.calibration(CALIBRATION)
    files = station or STATION, calibration or CALIBRATION
    return VirtualBench(STATION, truth, plant, mistakes, errors, seed, *files)


def session_of(bench, operator=None, daily=False):
    record = Record(robot=ROBOT.name, station="licher2025", calibration="licher2025")
    return Session(bench, operator or VirtualOperator(bench), ROBOT, record, daily=daily)


def commissioned(directory, mistakes=None, steps=STEPS, begin="", session=None, **bench):
    """A session after all steps, and whether all were done."""
    session = session or session_of(bench_with(mistakes, **bench))
    session.bench.open()
    done = lead(session, steps, begin, directory / "record.yaml", lambda line, style: None)
    return session, done


def words(session):
    return [finding.words for finding in session.record.findings()]


def expected(mistakes):
    """What must be said of planted mistakes, as beginnings of lines."""
    said = []
    for what in ("sensors", "valves", "hoses"):
        for circle in getattr(mistakes, f"swapped_{what}"):
            first, second = sorted(circle)
            said.append(f"{what} of {first} and {second} are swapped")
    said += [f"the valve of {name} is wired in reverse" for name in mistakes.reversed_valves]
    for name, factor in mistakes.sensor_factors.items():
        wrong_sign = f"the sensor of {name} has the wrong sign"
        said.append(wrong_sign if factor < 0 else f"the slope of the sensor of {name} is")
    for field, start in (
        ("base_turn", "the base is turned by"),
        ("body_turn", "the tip body's axes are turned by"),
        ("force_torque_turn", "the force-torque sensor is mounted turned by"),
    ):
        turn = np.array(getattr(mistakes, field))
        if turn.any():
            axis = int(np.argmax(np.abs(turn)))
            said.append(f"{start} {turn[axis]:.0f} deg about {'xyz'[axis]}")
    return said


def only_said(session, *beginnings):
    """Every beginning is said, and nothing else."""
    lines = words(session)
    for beginning in beginnings:
        assert any(line.startswith(beginning) for line in lines), (beginning, lines)
    assert len(lines) == len(beginnings), lines


def away(found, true):
    """Distance [mm] and angle [deg] between two (4, 4) poses."""
    twist = pin.log6(pin.SE3(true).actInv(pin.SE3(found))).vector
    return 1e3 * np.linalg.norm(twist[:3]), np.degrees(np.linalg.norm(twist[3:]))


def check_station(directory, mistakes, errors=ERRORS):
    """The file against what the bench was made of."""
    station = load_station(directory / "station.yaml", NAMES)
    assert station.flow.fill_rate == pytest.approx(25.0 * errors.fill_gain, rel=0.03)
    assert station.flow.exhaust_rate == pytest.approx(25.0 * errors.exhaust_gain, rel=0.03)
    assert station.valve.dead_band == pytest.approx(0.2 + errors.dead_band, abs=0.012)
    assert station.valve.closed == pytest.approx(5.0, abs=0.012)
    assert station.valve.lag == pytest.approx(0.003 + errors.lag, abs=0.001)
    valve_of = mistakes.exchanged("swapped_valves", NAMES)  # of each output
    chamber_of = mistakes.exchanged("swapped_hoses", NAMES)  # of each valve
    hose_of = mistakes.exchanged("swapped_sensors", NAMES)  # of each input
    for index, chamber in enumerate(station.chambers):
        output, sensor = chamber.valve.channel - 1, chamber.sensor.channel - 1
        hose = valve_of[output]
        assert chamber_of[hose] == index
        assert hose_of[sensor] == hose
        name = NAMES[sensor]
        assert chamber.sensor.zero == pytest.approx(1.0 + OFFSETS[name], abs=0.002)
        factor = mistakes.sensor_factors.get(name, 1.0)
        assert chamber.sensor.pascal_per_volt == pytest.approx(2.5e4 / abs(factor), rel=0.02)
    return station


def check_calibration(directory, bench, millimetres=1.0, degrees=0.5):
    found = load_calibration(directory / "calibration.yaml")
    for part in ("base_in_world", "tip_in_body"):
        shift, angle = away(getattr(found, part).pose, getattr(bench.truth, part).pose)
        assert shift < millimetres
        assert angle < degrees


def test_a_good_bench_is_commissioned_and_the_daily_check_passes(tmp_path):
    session, done = commissioned(tmp_path)
    assert done
    assert words(session) == []
    assert good(session.record, STEPS, daily=False)
    write_files(session, tmp_path)
    station = check_station(tmp_path, BenchMistakes())
    assert station.guard.commissioned
    check_calibration(tmp_path, session.bench)
    assert load_mounting(tmp_path / "mounting.yaml").rotation == pytest.approx(np.eye(3), abs=0.02)

    kept = load_calibration(tmp_path / "calibration.yaml")
    bench = bench_with(station=station, calibration=kept, seed=1)
    day, done = commissioned(tmp_path, steps=DAILY, session=session_of(bench, daily=True))
    assert done
    assert words(day) == []
    assert day.bench.now < 120.0

    drifted = ChamberErrors(fill_gain=1.3, exhaust_gain=0.9, dead_band=0.03)
    mistakes = BenchMistakes(sensor_offsets={"chamber_2": 0.02})
    bench = bench_with(mistakes, drifted, station, kept)
    day, _ = commissioned(tmp_path, steps=DAILY, session=session_of(bench, daily=True))
    lines = words(day)
    assert any(line.startswith("the sensor of chamber_2 reads 1.02") for line in lines), lines
    assert any("fill rate is 3" in line for line in lines), lines


CHANGED = (("chamber_1", "chamber_3"),)
SIX = (
    BenchMistakes(
        swapped_sensors=(("chamber_1", "chamber_2"),), swapped_hoses=CHANGED,
        swapped_valves=(("chamber_2", "chamber_3"),), base_turn=(0, 0, 180), body_turn=(90, 0, 0),
        force_torque_turn=(0, 0, 90),
    ),
    BenchMistakes(
        swapped_sensors=CHANGED, swapped_hoses=CHANGED, swapped_valves=CHANGED,
        sensor_factors={"chamber_2": 0.625}, body_turn=(0, 0, -90), force_torque_turn=(0, 0, 180),
    ),
)  # fmt: skip
FIRST = ("zero", "sensors", "exhaust", "survey", "wiring")
BEFORE = tuple(step for step in STEPS if step.name in FIRST)


@pytest.mark.parametrize("mistakes", SIX)
def test_six_mistakes_at_once_are_named_and_the_files_are_right(mistakes, tmp_path):
    session, done = commissioned(tmp_path, mistakes)
    assert done
    only_said(session, *expected(mistakes))
    assert good(session.record, STEPS, daily=False)  # the files say it all
    write_files(session, tmp_path)
    assert check_station(tmp_path, mistakes).guard.commissioned
    check_calibration(tmp_path, session.bench)
    turn = pin.exp3(np.radians(mistakes.force_torque_turn))
    found = load_mounting(tmp_path / "mounting.yaml").rotation
    assert np.degrees(np.linalg.norm(pin.log3(turn.T @ found))) < 2.0


def test_mistakes_for_the_hand_are_named_and_the_bench_is_not_commissioned(tmp_path):
    mistakes = BenchMistakes(
        swapped_hoses=(("chamber_2", "chamber_3"),),
        reversed_valves=("chamber_3",),
        sensor_factors={"chamber_1": -1.0},
        base_turn=(0, 0, 90),
        mirrored_positions="y",
        leaks={"chamber_2": 0.1},
    )
    session, done = commissioned(tmp_path, mistakes)
    assert done
    others = ("the cameras' positions are mirrored: y", "the line of chamber_2 leaks")
    only_said(session, *expected(mistakes), *others, "a dead host was not tried")
    assert not good(session.record, STEPS, daily=False)
    write_files(session, tmp_path)
    assert not load_station(tmp_path / "station.yaml").guard.commissioned


ALONE = (
    ({"swapped_hoses": (("chamber_2", "chamber_3"),)}, []),
    ({"base_turn": (0, 0, 120)}, []),
    ({"force_torque_turn": (0, 0, -120)}, []),
    ({"body_turn": (180, 0, 0)}, []),
    ({"mirrored_positions": "y"}, ["the cameras' positions are mirrored: y"]),
    ({"mirrored_axes": "y"}, ["the tip body's axes are mirrored: y"]),
    ({"mirrored_axes": "z", "mirrored_positions": "z"}, ["the cameras' world is mirrored: z"]),
    ({"sensor_factors": {"chamber_3": -1.0}}, []),
)


@pytest.mark.parametrize(("given", "others"), ALONE)
def test_each_mistake_alone_is_named(given, others, tmp_path):
    mistakes = BenchMistakes(**given)
    session, done = commissioned(tmp_path, mistakes, steps=BEFORE)
    assert done
    only_said(session, *expected(mistakes), *others)


def test_without_pulled_cables_what_looks_alike_is_said_so(tmp_path):
    bench = bench_with(SIX[0])
    session = session_of(bench, VirtualOperator(bench, refuses=("unplug",)))
    commissioned(tmp_path, session=session, steps=BEFORE)
    (doubtful,) = (each for each in session.record.findings() if each.could_be)
    told = f"{' '.join(words(session))} {doubtful.could_be}"
    for line in expected(SIX[0]):
        assert line in told


def test_it_goes_on_where_it_ended(tmp_path):
    bench = bench_with()
    leaves = VirtualOperator(bench)
    leaves.holds = lambda now: now < 20.0  # lets go of the switch, and comes back later
    session = session_of(bench, leaves)
    _, done = commissioned(tmp_path, session=session, steps=BEFORE)
    assert not done
    assert bench.actuator.pressures.max() < 1000.0  # everything exhausts
    record = load_record(tmp_path / "record.yaml")
    before = list(record.steps)
    assert before
    assert len(before) < len(BEFORE)

    bench = bench_with()
    session = Session(bench, VirtualOperator(bench), ROBOT, record)
    kept = {name: step.done for name, step in record.steps.items()}
    _, done = commissioned(tmp_path, session=session, steps=BEFORE)
    assert done
    assert list(session.record.steps) == [step.name for step in BEFORE]
    assert {name: session.record.steps[name].done for name in before} == kept


def test_nothing_begins_with_air_in_a_chamber(tmp_path):
    bench = bench_with()
    bench.turn_air(True)
    operator = VirtualOperator(bench, refuses=("air off",))
    with pytest.raises(UserError, match="not done: shut the air off"):
        commissioned(tmp_path, session=session_of(bench, operator))


@pytest.mark.parametrize("gain", [1.0, 2.0])
def test_no_true_pressure_passes_what_openings_can_bring(gain, tmp_path):
    """A sensor that always reads zero, and valves twice as strong as the file says."""
    mistakes = BenchMistakes(sensor_factors={"chamber_1": 1e-6})
    errors = ChamberErrors(fill_gain=gain)
    bench = bench_with(mistakes, errors)
    exchange, reached = bench.exchange, []

    def watched(volts, period):
        sample = exchange(volts, period)
        reached.append(bench.actuator.pressures.max())
        return sample

    bench.exchange = watched
    session, _ = commissioned(tmp_path, session=session_of(bench), steps=BEFORE)
    assert any("no sensor answers the valve of chamber_1" in line for line in words(session))
    assert 5000.0 < max(reached) < 21_000.0


def test_a_reading_that_is_too_high_ends_at_exhaust():
    bench = bench_with(errors=ChamberErrors(fill_gain=2.5))
    bench.turn_air(True)
    bench.open()
    drive = Drive(bench, VirtualOperator(bench))
    drive.trust_exhaust(np.zeros(3, bool))
    with pytest.raises(UserError, match="must stay below 15"):  # noqa: PT012
        for _ in range(10):  # the chamber is not vented before each, as it should be
            drive.fill(0, 0.06, 0.05)
    assert bench.actuator.pressures.max() < 0.1 * HIGHEST
    with pytest.raises(ValueError, match="a dose of up to"):
        drive.fill(0, 0.5, 0.1)


def test_an_emergency_stop_ends_it_and_takes_the_air():
    station = stopping_station()
    noise = PlantErrors.noiseless(tip_noise=1e-4)
    bench = VirtualBench(station, CALIBRATION, SimulatedPlant(ROBOT, noise))
    bench.turn_air(True)
    bench.open()
    drive = Drive(bench, VirtualOperator(bench))
    drive.trust_exhaust(np.zeros(3, bool))
    drive.rest(2.0)
    drive.fill(0, 0.06, 0.05)
    assert bench.actuator.pressures.max() < 500.0  # the dump valve has no current yet
    drive.let_air(True)
    drive.fill(0, 0.06, 0.05)
    assert bench.actuator.pressures.max() > 5000.0
    bench.bus.stopped = True
    with pytest.raises(UserError, match="emergency stops is open"):
        drive.hold(0, 1.0)
    assert bench.actuator.pressures.max() < 100.0
    assert not bench.data.air_on


def test_a_person_answers_and_holds_the_switch_at_the_terminal(monkeypatch):
    near, far = pty.openpty()
    with open(far, "rb", buffering=0) as terminal, single_keys(far):
        monkeypatch.setattr(sys, "stdin", terminal)
        said = []
        person = TerminalOperator(said.append)
        yes = person.ask(Question("air on", "open the air"))
        assert yes() is None
        os.write(near, b" y")
        assert until(yes, "yes", timeout=5.0) == "yes"
        assert person.holds(0.0)  # the space bar was among what was typed
        number = person.ask(Question("gauge", "read the gauge"))
        os.write(near, b"7.")
        os.write(near, b"9\n")
        assert until(number, "a number", timeout=5.0) == "7.9"
        assert not TerminalOperator(said.append).holds(0.0)
        assert TerminalOperator(said.append, deadman=False).holds(0.0)
    assert "open the air [y or n]" in said
    os.close(near)


def test_a_terminal_that_keeps_its_output_is_found(tmp_path):
    steps = (*BEFORE, next(step for step in STEPS if step.name == "watchdog"))
    session, _ = commissioned(tmp_path, BenchMistakes(keeps_last_output=True), steps=steps)
    lines = words(session)
    assert len(lines) == 3
    assert all("does not open the exhaust" in line for line in lines)


def test_mistakes_for_practice_are_six_kinds_of_known_chambers():
    for seed in range(20):
        mistakes = some_mistakes(seed, NAMES)
        assert len(mistakes.model_dump(exclude_defaults=True)) == 6
        bench_with(mistakes)  # names no unknown chamber
    assert some_mistakes(3, NAMES) == some_mistakes(3, NAMES)


def test_a_file_of_mistakes_names_what_is_not_allowed():
    with pytest.raises(UserError, match="chamber 'chamber_7': unknown"):
        bench_with(BenchMistakes(swapped_hoses=(("chamber_1", "chamber_7"),)))
    with pytest.raises(ValueError, match="each named once"):
        BenchMistakes(swapped_hoses=(("chamber_1", "chamber_1"),))
