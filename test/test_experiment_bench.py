"""`softcr experiment bench`: the virtual bench, and what hurts it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from softcr_hardware.actuator import EmulatedActuator
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_runtime import virtual
from softcr_runtime.block import CLOCK, BlockBase, Input, Output
from softcr_runtime.settings import NodeSettings
from softcr_runtime.system import Part, System
from softcr_runtime.virtual import VirtualExecutor
from softcr_tools.experiments.bench import command
from softcr_tools.experiments.bench.memory_bus import MemoryBus
from softcr_tools.experiments.bench.setups import VARIATIONS, Bench, Simulation
from softcr_tools.experiments.bench.virtual_bench import bench_system, device, run_bench
from softcr_tools.experiments.bench.world import World
from softcr_tools.experiments.tracking.cases import SETTLED
from softcr_tools.experiments.tracking.loop import PERIOD

ROBOT = load_robot("licher2025")
STATION = load_station("licher2025")
DURATION = 3.0
FIRST = round(SETTLED / PERIOD)


@pytest.fixture(scope="module")
def source():
    return command.motion(ROBOT, DURATION)


@pytest.fixture(scope="module")
def shipped(source):
    return run_bench(ROBOT, Bench(), source, 0, DURATION)


def settled_mm(error):
    return 1e3 * error[FIRST:].mean()


def time_shift(trace):
    """How far the tip is ahead of its reference, along the motion [s]."""
    velocity = np.gradient(trace.reference_tips, PERIOD, axis=0)[FIRST:]
    off = (trace.tips - trace.reference_tips)[FIRST:]
    return float((off * velocity).sum() / (velocity**2).sum())


def test_the_bench_follows_as_the_simulation_does(source, shipped):
    simulated = settled_mm(command.run(ROBOT, Simulation(), source, 0, DURATION))
    assert settled_mm(shipped.error) < 0.3
    assert settled_mm(shipped.error) == pytest.approx(simulated, abs=0.05)
    assert len(shipped.error) == round(DURATION / PERIOD)
    # the motion begins where it is told to: the rod rests there
    assert shipped.error[0] < 1e-3


def test_valves_stay_enabled_and_within_their_limits(shipped):
    limits = ROBOT.pressure_limits
    assert shipped.enabled
    assert shipped.predicted_only == 0
    assert shipped.sent.min() >= limits.minimum
    assert shipped.sent.max() <= limits.maximum
    assert np.ptp(shipped.sent, axis=0).min() > 1e4  # they moved
    assert np.abs(np.diff(shipped.sent, axis=0)).max() <= 1.1 * limits.maximum_rate * PERIOD


def test_equal_seeds_give_equal_runs_to_the_bit(source):
    shaky = Bench(jitter=5e-3, answers_lost=0.1, frames_lost=0.1)
    first, second, other = (run_bench(ROBOT, shaky, source, seed, 0.5) for seed in (3, 3, 4))
    assert np.array_equal(first.tips, second.tips)
    assert np.array_equal(first.sent, second.sent)
    assert not np.array_equal(first.tips, other.tips)


def test_what_is_stamped_late_is_ahead_by_as_much(source, shipped):
    late = run_bench(ROBOT, Bench(poses_late=2e-3), source, 0, DURATION)
    assert time_shift(late) - time_shift(shipped) == pytest.approx(2e-3, abs=3e-4)
    assert settled_mm(late.error) > 3 * settled_mm(shipped.error)


def test_ideal_sensors_and_another_controller_close_the_loop(source):
    ideal = Bench("nempc", quantised=False, pressures_at_ticks=True, poses_at_ticks=True)
    trace = run_bench(ROBOT, ideal, source, 0, 1.0)
    assert trace.enabled
    assert 1e3 * trace.error.mean() < 1.0


def test_without_poses_the_valves_are_not_enabled(source, monkeypatch):
    monkeypatch.setattr(virtual, "LONGEST_BEGINNING", 0.6)
    with pytest.raises(UserError, match=r"enable refused for 0.6 s: valves not enabled: .*poses"):
        run_bench(ROBOT, Bench(frames_lost=1.0), source, 0, 1.0)


class Filling(BlockBase):
    """Asks for empty chambers, and at `FILLED` for filled ones; each answer is 2 ms on its way."""

    name = "filling"
    inputs = (Input(CLOCK, "lead"),)
    outputs = ("pressure/command",)
    world: World

    def tick(self, now, samples):
        # the valves are enabled by commands that come, whatever they ask for
        asked = 1e4 if now == FILLED else 0.0
        return [Output("pressure/command", now, np.full(3, asked))] if now <= FILLED else []

    @property
    def finished(self):
        return self.world.driver.report.sent.any()


FILLED = 42 * round(1e9 * PERIOD)  # [ns]


def begin_of(bench):
    """From a command's stamp to the moment from which the setpoint moves [s]."""
    world = World(ROBOT, bench, 0, PERIOD)
    filling = Filling(ROBOT, NodeSettings())
    filling.world = world
    shipped = bench_system(bench, 0)
    parts = (
        *(shipped.part(name) for name in ("fast_cycle", "valves", "cameras")),
        Part(filling.name, "here:Filling", computing=2e-3),
    )
    system = System(
        "valves", parts, tuple(part.name for part in parts), 1.0, simulated_time=False,
        controller=filling.name, begin=("valves/enable",),
    )  # fmt: skip
    executor = VirtualExecutor(
        system, make=lambda part: device(part, ROBOT, bench, world) or filling, guarded=False
    )
    executor.run()
    assert filling.finished
    return 1e-9 * (executor.now - FILLED)


def test_valves_wait_for_the_age_of_a_command():
    """They reckon with 1.5 of their cycles from computing to pressures, and run once in 1 ms."""
    assert begin_of(Bench()) == pytest.approx(2 * PERIOD - 1e-3, abs=0.55e-3)
    assert begin_of(Bench(delay=3)) == pytest.approx(3 * PERIOD - 1e-3, abs=0.55e-3)
    late = begin_of(Bench(valves_late=3e-3)) - begin_of(Bench())
    assert late == pytest.approx(3e-3, abs=1e-8)
    # sent 2 ms after its stamp, seen in the next look, and followed in the cycle after it
    assert 2e-3 <= begin_of(Bench(delay=0)) <= 2e-3 + 5e-3 + 1e-3


def test_a_run_that_was_vented_has_no_error(source, shipped, monkeypatch):
    for enabled in (True, False):
        trace = replace(shipped, enabled=enabled)
        monkeypatch.setattr(command, "run_bench", lambda *told, trace=trace: trace)
        error = command.run(ROBOT, Bench(), source, 0, DURATION)
        assert len(error) == len(shipped.tips)
        assert np.isfinite(error).all() == enabled


def test_the_bus_counts_in_16_bits_and_brings_volts_after_it_has_read():
    now = [0.0]
    data = ProcessData(STATION)
    fill = np.full(3, STATION.valve.fill - 1e-4)
    found = {}
    for quantised in (False, True):
        now[0] = 0.0
        bus = MemoryBus(STATION, data, EmulatedActuator(STATION), lambda: now[0], quantised)
        first = bus.exchange(fill)
        now[0] = 0.001
        second = bus.exchange(fill)
        assert np.array_equal(first.volts, bus_volts(data, np.zeros(3), quantised))
        assert (second.volts > first.volts).all()
        assert not first.broken.any()
        assert (first.toggles != second.toggles).all()
        found[quantised] = second.volts
    step = 10.0 / 0x7FFF
    off = found[True] - found[False]
    assert 0.0 < np.abs(off).max() < 1.5 * step  # of the reading, and of what was commanded
    assert np.allclose(found[True] / step, np.rint(found[True] / step), atol=1e-9)


def bus_volts(data, pressures, quantised):
    volts = data.volts(pressures)
    return np.rint(volts / 10.0 * 0x7FFF) * (10.0 / 0x7FFF) if quantised else volts


def test_every_bench_of_the_list_is_one_difference():
    names = [each.name for each in VARIATIONS]
    assert len(set(names)) == len(names)
    assert len({each.setup for each in VARIATIONS}) == len(names)
    [bench] = [each.setup for each in VARIATIONS if each.name == "bench"]
    assert bench == Bench()
    several = {"ideal-sensors", "early-steps"}
    for each in VARIATIONS:
        if isinstance(each.setup, Bench) and each.name not in several | {"bench"}:
            changed = [
                field
                for field in vars(bench)
                if getattr(each.setup, field) != getattr(bench, field)
            ]
            assert len(changed) == 1, each.name
            assert replace(bench, **{changed[0]: getattr(each.setup, changed[0])}) == each.setup


def test_the_command_writes_what_was_asked_for(tmp_path, source, monkeypatch, capsys):
    monkeypatch.setattr(command, "motion", lambda robot, duration: source)
    words = ["--seeds", "1", "--duration", "2.2", "--only", "simulation", "bench"]
    assert command.main([*words, "--results", str(tmp_path)]) == 0
    path = tmp_path / "experiments" / "bench" / "latest" / "table.json"
    rows = json.loads(path.read_text())["rows"]
    assert [(row["case"], row["quantity"]) for row in rows] == [
        ("simulation", "tip AED"), ("simulation", "settled"),
        ("bench", "tip AED"), ("bench", "settled"),
    ]  # fmt: skip
    assert all(0.0 < row["mean"] < 0.5 for row in rows)
    assert "as shipped" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "benches"], "invalid choice: 'benches'"),
        (["--seeds", "0"], "'0': must be a whole number from 1"),
        (["--duration", "2"], "'2': must be a number of s above 2"),
        (["--duration", "x"], "'x': must be"),
    ],
)
def test_what_makes_no_sense_is_refused(words, told, capsys):
    with pytest.raises(SystemExit) as refused:
        command.main(words)
    assert refused.value.code == 2
    assert told in capsys.readouterr().err
