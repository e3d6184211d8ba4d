"""Study `robustness/bench-timing`: the virtual bench, and what hurts it."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from kit.studies import rows_of

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.chambers import ChamberErrors
from softcr_hardware.emulation.virtual_devices import EmulatedBench, devices_of
from softcr_hardware.ethercat.memory_bus import MemoryBus
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_runtime.blocks import virtual
from softcr_runtime.blocks.block import CLOCK, BlockBase, Input, Output
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.system import Computing, Part, System
from softcr_runtime.blocks.virtual import VirtualExecutor
from softcr_runtime.settings.node_settings import NodeSettings, build_settings
from softcr_studies.frame.cell import Cell
from softcr_studies.robustness import bench_timing
from softcr_studies.robustness.bench_timing import (
    PERIOD,
    SETTLED,
    STUDY,
    VARIATIONS,
    Bench,
    Settings,
    Simulation,
    Variation,
    emulated,
    loop_parts,
    run,
    run_bench,
)
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system

ROBOT = load_robot("licher2025")
STATION = load_station("licher2025")
DURATION = 3.0
FIRST = round(SETTLED / PERIOD)


def bench_run(bench, seed=0, duration=DURATION):
    return run_bench(Cell("bench", "any", seed, None), bench, duration)


def simulated(duration, **setup):
    variation = Variation("s", "s", Simulation(**setup))
    return run(Cell(variation, "s", 0, Settings(duration=duration)))


@pytest.fixture(scope="module")
def shipped():
    return bench_run(Bench())


def settled_mm(error):
    return 1e3 * error[FIRST:].mean()


def time_shift(result):
    """How far the tip is ahead of its reference, along the motion [s]."""
    velocity = np.gradient(result["wanted"], PERIOD, axis=0)[FIRST:]
    off = (result["tips"] - result["wanted"])[FIRST:]
    return float((off * velocity).sum() / (velocity**2).sum())


def test_the_bench_follows_as_the_simulation_does(shipped):
    error, other = shipped["error"], simulated(DURATION)["error"]
    assert settled_mm(error) < 0.3
    assert settled_mm(error) == pytest.approx(settled_mm(other), abs=0.05)
    assert len(error) == round(DURATION / PERIOD)
    # the motion begins where it is told to: the rod rests there
    assert error[0] < 1e-3
    # valves stay enabled and within their limits
    limits, sent = ROBOT.pressure_limits, shipped["sent"]
    assert shipped["predicted_only"] == 0
    assert limits.minimum <= sent.min() <= sent.max() <= limits.maximum
    assert np.ptp(sent, axis=0).min() > 1e4  # they moved
    assert np.abs(np.diff(sent, axis=0)).max() <= 1.1 * limits.maximum_rate * PERIOD


def test_a_late_simulation_is_answered_two_periods_later():
    results = [simulated(2.5, delay=delay) for delay in (1, 2)]
    steps = [np.linalg.norm(np.diff(each["tips"], axis=0), axis=1) for each in results]
    moved = [np.flatnonzero(step > 1e-9)[0] for step in steps]
    assert moved[1] == moved[0] + 1
    assert settled_mm(results[1]["error"]) < 0.3


def test_equal_seeds_give_equal_runs_to_the_bit():
    shaky = Bench(jitter=5e-3, answers_lost=0.1, frames_lost=0.1)
    first, second, other = (bench_run(shaky, seed, 0.5) for seed in (3, 3, 4))
    assert np.array_equal(first["tips"], second["tips"])
    assert np.array_equal(first["sent"], second["sent"])
    assert not np.array_equal(first["tips"], other["tips"])


def test_frames_that_are_lost_are_missed_by_the_estimator():
    assert bench_run(Bench(frames_lost=0.5), 0, 0.5)["predicted_only"] > 3


def test_what_is_stamped_late_is_ahead_by_as_much(shipped):
    late = bench_run(Bench(poses_late=2e-3))
    assert time_shift(late) - time_shift(shipped) == pytest.approx(2e-3, abs=3e-4)
    assert settled_mm(late["error"]) > 3 * settled_mm(shipped["error"])


def test_ideal_sensors_and_another_controller_close_the_loop():
    ideal = Bench(controller="nempc", quantised=False, pressures_at_ticks=True, poses_at_ticks=True)
    assert 1e3 * bench_run(ideal, 0, 1.0)["error"].mean() < 1.0


def test_without_poses_the_valves_are_not_enabled(monkeypatch):
    monkeypatch.setattr(virtual, "LONGEST_BEGINNING", 0.6)
    with pytest.raises(UserError, match=r"enable refused for 0.6 s: valves not enabled: .*poses"):
        bench_run(Bench(frames_lost=1.0), 0, 1.0)


@pytest.mark.parametrize("controller", ["rod_mpc", "nempc"])
def test_the_loop_is_that_of_the_hardware_system(controller):
    """Duration and grid of the motion aside, which the study chooses."""
    options = build_settings(HardwareOptions, {"controller": controller, "seed": 5})
    system = hardware_system(options, Path())
    for part in loop_parts(Bench(controller=controller), 5, 9.0):
        theirs = system.part(part.name)
        assert part.runs == theirs.runs
        block = virtual.load_class(part.runs, "block", BlockBase)
        ours, told = (dict(block.settings_of(each.parameters)) for each in (part, theirs))
        differing = {name for name in told if ours[name] != told[name]}
        chosen = {"duration", "trajectory_intervals", "realtime_priority"}
        assert differing - chosen == ({"population"} & differing)


class Filling(BlockBase):
    """Asks for empty chambers, and at `FILLED` for filled ones; each answer is 2 ms on its way."""

    name = "filling"
    inputs = (Input(CLOCK, "lead"),)
    outputs = ("pressure/plan",)
    world: EmulatedBench
    delay: int  # from a stamp to when its command is due [periods]

    def tick(self, now, samples):
        # the valves are enabled by commands that come, whatever they ask for
        asked = 1e4 if now == FILLED else 0.0
        due = now + self.delay * round(1e9 * PERIOD)
        packet = CommandPacket.single(due, np.full(3, asked))
        return [Output("pressure/plan", now, packet)] if now <= FILLED else []

    @property
    def finished(self):
        return self.world.driver.report.sent.any()


FILLED = 42 * round(1e9 * PERIOD)  # [ns]


def begin_of(bench):
    """From a command's stamp to the moment from which the setpoint moves [s]."""
    world = emulated(bench, 0)
    filling = Filling(ROBOT, NodeSettings())
    filling.world, filling.delay = world, bench.delay
    made = devices_of(world, np.random.default_rng(0))
    slow = Part(filling.name, "here:Filling", computing=Computing(2e-3))
    parts = (*(part for part, _ in made), slow)
    system = System(
        "valves", parts, tuple(part.name for part in parts), 1.0, simulated_time=False,
        controller=filling.name, begin=("valves/enable",),
    )  # fmt: skip
    blocks = {part.name: device for part, device in made} | {filling.name: filling}
    executor = VirtualExecutor(system, make=lambda part: blocks[part.name], guarded=False)
    executor.run()
    assert filling.finished
    return 1e-9 * (executor.now - FILLED)


def test_valves_wait_until_a_command_is_due():
    """They reckon with 1.5 of their cycles from computing to valves, which run once in 1 ms, and
    with the lag of the valves."""
    early = 1e-3 + STATION.valve.lag
    assert begin_of(Bench(delay=2)) == pytest.approx(2 * PERIOD - early, abs=0.55e-3)
    assert begin_of(Bench(delay=3)) == pytest.approx(3 * PERIOD - early, abs=0.55e-3)
    late = begin_of(Bench(delay=2, valves_late=3e-3)) - begin_of(Bench(delay=2))
    assert late == pytest.approx(3e-3, abs=1e-8)
    # sent 2 ms after its stamp, seen in the next look, and followed in the cycle after it
    assert 2e-3 <= begin_of(Bench(delay=0)) <= 2e-3 + 5e-3 + 1e-3


def test_a_run_that_was_vented_has_no_error(monkeypatch):
    class Vented(EmulatedBench):
        def cycle(self, now):
            super().cycle(now)
            if now > 1.2:
                self.driver.vent()

    monkeypatch.setattr(bench_timing, "EmulatedBench", Vented)
    result = bench_run(Bench(), 0, 1.0)
    assert len(result["error"]) == len(result["tips"]) == 70
    assert np.isnan(result["error"]).all()
    assert np.isfinite(result["tips"]).all()


def test_the_bus_counts_in_16_bits_and_brings_volts_after_it_has_read():
    data, found, now = ProcessData(STATION), {}, [0.0]
    fill = np.full(3, STATION.valve.fill - 1e-4)
    at_once = ChamberErrors(lag=-STATION.valve.lag)
    for quantised in (False, True):
        now[0] = 0.0
        actuator = EmulatedActuator(STATION, errors=at_once)
        bus = MemoryBus(STATION, data, actuator, lambda: now[0], quantised, noise=0.0)
        first = bus.exchange(fill)
        now[0] = 0.001
        second = bus.exchange(fill)
        empty = data.volts(np.zeros(3))
        empty = np.rint(empty / 10.0 * 0x7FFF) * (10.0 / 0x7FFF) if quantised else empty
        assert np.array_equal(first.volts, empty)
        assert (second.volts > first.volts).all()
        assert not first.broken.any()
        assert (first.toggles != second.toggles).all()
        found[quantised] = second.volts
    step = 10.0 / 0x7FFF
    off = found[True] - found[False]
    assert 0.0 < np.abs(off).max() < 1.5 * step  # of the reading, and of what was commanded
    assert np.allclose(found[True] / step, np.rint(found[True] / step), atol=1e-9)


def test_every_bench_of_the_list_is_one_difference():
    keys = [each.key for each in VARIATIONS]
    assert len(set(keys)) == len(keys)
    assert len({(each.name, each.what) for each in VARIATIONS}) == len(keys)
    assert all(one.setup != other.setup for one, other in combinations(VARIATIONS, 2))
    [bench] = [each.setup for each in VARIATIONS if each.key == "bench"]
    assert bench == Bench()
    several = {"ideal-sensors", "early-steps"}
    for each in VARIATIONS:
        if isinstance(each.setup, Bench) and each.key not in several | {"bench"}:
            changed = [k for k, v in vars(each.setup).items() if v != vars(bench)[k]]
            assert len(changed) == 1, each.key


def test_the_study_runs_what_was_asked_for(tmp_path):
    rows, _ = rows_of(STUDY.name, tmp_path, seeds=1, duration=2.2, only="simulation, bench")
    assert list(rows) == [
        (case, "as shipped", quantity)
        for case in ("simulation", "bench")
        for quantity in ("mean tip error", "settled tip error")
    ]
    assert all(0.0 < row.mean < 0.5 for row in rows.values())


def test_what_makes_no_sense_is_refused():
    with pytest.raises(UserError, match="'benches': allowed are simulation, simulation-2, bench,"):
        build_settings(Settings, {"only": "bench, benches"})
