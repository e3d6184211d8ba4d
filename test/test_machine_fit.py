"""What is started on this machine: the loop's parts are timed before."""

import json
import math
import os
import time
from dataclasses import replace

import pytest
from kit.refusals import one_line

from softcr_models.errors import UserError
from softcr_tools.running import free_cores, machine_fit
from softcr_tools.running.free_cores import cores_that_can_be_had, on_one_core
from softcr_tools.running.machine_fit import LoopCost, TickCost, fitted, loop_cost
from softcr_tools.running.rehearse import RehearsalOptions
from softcr_tools.running.roles import ROLES
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.virtual_rehearsal import around_a_bench
from softcr_tools.running.virtual_up import simulated

PERIOD = 1 / 70


def at_any_rate(**given):
    return SimulationOptions(robot="licher2025_chain", duration=1.0, **given)


def wanted(**given):
    """A run whose rate was chosen: it stays as it is."""
    return at_any_rate(**given).told("plant", {"rate_hz": 70.0})


def costing(monkeypatch, cost, cores=2.0):
    """A machine of so many cores, on which the loop of options has a cost."""
    monkeypatch.setattr(machine_fit, "loop_cost", cost)
    monkeypatch.setattr(machine_fit, "cores_that_can_be_had", lambda: cores)


def machine(monkeypatch, cores=2.0, node=0.0, **periods):
    """One of so many cores on which ticks take so many periods; returns the lines that are told."""

    def cost(options):
        period = 1.0 / options.of("plant").get("rate_hz", 70.0)
        names = ("simulator", "estimator", options.controller)
        ticks = {name: TickCost(periods.get(name, 0.1) * PERIOD, period) for name in names}
        return LoopCost(ticks, node * PERIOD)

    costing(monkeypatch, cost, cores)
    return []


def fit(options, told, anyway=False):
    return fitted(options, lambda short: short, told.append, anyway)


def test_a_nempc_that_nobody_asked_for_gives_way(monkeypatch):
    told = machine(monkeypatch, nempc=2.5)
    assert fit(wanted(), told).controller == "rod_mpc"
    assert told[0] == "rod_mpc: nempc takes 35.7 ms of 14.3 ms; it needs a faster processor"
    asked_for = wanted(controller="nempc")
    assert fit(asked_for, told) is asked_for
    assert told[-1].endswith("nempc answers every fourth estimate")
    assert fit(wanted(roles={"controller": {"population": 64}}), told).controller == "nempc"
    # sub-steps that a robot needs are nobody's choice
    assert fit(wanted(roles={"controller": {"substeps": 6}}), told).controller == "rod_mpc"
    told = machine(monkeypatch, nempc=1.5)  # every second estimate: the cheaper one is better
    assert fit(wanted(), told).controller == "rod_mpc"
    by_default = wanted()
    assert fit(by_default, machine(monkeypatch, nempc=0.7)) is by_default


@pytest.mark.parametrize("slow", [{"estimator": 0.9}, {"simulator": 0.9}, {"rod_mpc": 4.1}])
def test_what_cannot_keep_up_is_refused_in_a_line_unless_told(monkeypatch, slow):
    options = wanted(controller="rod_mpc")
    told = machine(monkeypatch, **slow)
    with one_line(f"too slow: {next(iter(slow))}; .*--anyway"):
        fit(options, told)
    assert told == []
    assert fit(options, told, anyway=True) is options
    assert "does not keep up" in told[0]


def test_what_nobody_chose_gives_way_until_the_loop_keeps_up(monkeypatch):
    def cost(options):
        estimator = options.of("estimator")
        takes = 1.5 if estimator.get("filter") != "ekf" else 0.9
        takes *= estimator.get("intervals", 5) / 5
        ticks = {"simulator": 0.3, "estimator": takes, options.controller: 0.2}
        return LoopCost({name: TickCost(t * PERIOD, PERIOD) for name, t in ticks.items()}, 0.0)

    costing(monkeypatch, cost)
    told, arm = [], {"robot": "three_segments", "duration": 1.0}
    found = fit(SimulationOptions(**arm), told)
    assert (found.controller, found.visuals) == ("rod_mpc", "off")
    assert found.of("estimator")["filter"] == "ekf"
    assert {found.of(name)["intervals"] for name in ("estimator", "controller", "reference")} == {2}
    assert told[0].splitlines()[1:] == [
        "visuals off: there are no cores left for what is only looked at",
        "rate 50 Hz in place of 70: at the usual one nothing is left for what comes late",
        "estimator.filter ekf: ukf takes 21.4 ms of 14.3 ms",
        "estimator.intervals and controller.intervals and reference.intervals 2 of each segment: "
        "a coarser rod",
    ]
    for chosen in ({"intervals": 5}, {"intervals": 5, "filter": "ukf"}):
        with pytest.raises(UserError, match="too slow: estimator"):
            fit(SimulationOptions(**arm, roles={"estimator": chosen}), [])
    with pytest.raises(UserError, match="too slow: estimator"):  # one segment is not made coarser
        fit(wanted(), [])


def test_pictures_give_way_where_cores_are_few(monkeypatch):
    ticks = {"simulator": 0.06, "estimator": 0.11, "rod_mpc": 0.07, "nempc": 1.0}
    told = machine(monkeypatch, cores=1.0, node=0.1, **ticks)
    options = wanted()
    found = fit(options, told)
    assert (found.controller, found.visuals, found.processes) == ("rod_mpc", "off", "one")
    assert found.of("estimator") == {}
    assert fit(options.model_copy(update={"processes": "each"}), told).processes == "each"
    with pytest.raises(UserError, match="too slow: all together"):
        fit(options.model_copy(update={"visuals": "on"}), told)


def test_a_simulation_on_few_cores_has_a_slower_rate_where_little_of_them_is_left(monkeypatch):
    told = machine(monkeypatch, cores=1.0, simulator=0.06, estimator=0.15, rod_mpc=0.1, nempc=1.0)
    found = fit(at_any_rate(), told)
    assert {found.of(role)["rate_hz"] for role in ROLES} == {50.0}
    # the exact rod's filter needs three for the same sub-steps, and its controller one
    assert found.of("estimator")["substeps"] == 3
    assert "substeps" not in found.of("controller")
    assert any(line.startswith("rate 50 Hz in place of 70: ") for line in told[0].splitlines())
    # those that were told keep their length
    found = fit(at_any_rate(roles={"estimator": {"substeps": 4}}), told)
    assert found.of("estimator")["substeps"] == 6  # of 3.3 ms, not of 3.6
    told = machine(monkeypatch, cores=1.0, simulator=0.06, estimator=0.06, rod_mpc=0.06)
    calm = fit(at_any_rate(controller="rod_mpc"), told)
    assert (calm.processes, calm.roles) == ("auto", {})
    machine(monkeypatch, cores=2.0, simulator=0.3, estimator=0.3, rod_mpc=0.3)
    assert fit(at_any_rate(controller="rod_mpc"), told).roles == {}
    machine(monkeypatch, cores=2.0, simulator=0.3, estimator=0.5, rod_mpc=0.5)  # 1.7 of two
    found = fit(at_any_rate(controller="rod_mpc"), told)
    assert (found.of("plant")["rate_hz"], found.processes) == (50.0, "auto")


def test_parts_of_one_process_cost_fewer_messages_and_answer_every_estimate(monkeypatch):
    names = ("simulator", "estimator", "rod_mpc")
    ticks = dict.fromkeys(names, TickCost(0.06 * PERIOD, PERIOD))
    cost = LoopCost(ticks, node=0.1 * PERIOD, others=0.3)
    costing(monkeypatch, lambda options: cost, cores=1.0)
    told = []
    for processes in ("each", "one"):
        fit(wanted(controller="rod_mpc", processes=processes, visuals="on"), told)
    assert told[0].endswith("the loop takes 0.8; rod_mpc answers every second estimate")
    assert told[1].endswith("the loop takes 0.7")
    slow = replace(cost, node=0.4 * PERIOD)
    costing(monkeypatch, lambda options: slow, cores=1.0)
    with pytest.raises(UserError, match="too slow: all together"):
        fit(wanted(controller="rod_mpc", processes="one"), [])


def test_cores_are_shared(monkeypatch):
    options = wanted(controller="rod_mpc")
    told = machine(monkeypatch, simulator=0.4, estimator=0.45, rod_mpc=0.7)
    assert fit(options, told) is options  # 2.3 of 2 cores: not every estimate is answered
    assert "of 2.0 cores the loop takes 1.7; rod_mpc answers every fourth estimate" in told[0]
    machine(monkeypatch, cores=1.0, simulator=0.7, estimator=0.7, rod_mpc=0.7)
    with pytest.raises(UserError, match=r"of 1\.0 cores .* too slow: all together; --mode virtual"):
        fit(options, [])
    both = LoopCost({"nempc": TickCost(0.008, PERIOD, threads=2)}, node=0.001, others=0.1)
    assert both.fit(2.0).every == 1
    # with a core less both threads take turns: 22 ms of work on 0.75 of a core
    assert both.fit(1.0).every == math.ceil(1.3 * 0.017 / (0.85 - 0.1) / PERIOD) == 3


def test_a_controller_that_can_answer_with_less_does(monkeypatch):
    ticks = {"nempc": TickCost(0.6 * PERIOD, PERIOD, threads=2)}
    cost = LoopCost(ticks, node=0.0, others=0.0, candidates=1000, least=128, share=0.5)
    whole, half, least = cost.fit(2.0), cost.fit(1.0), cost.fit(0.1)
    assert (whole.candidates, whole.every) == (544, 1)  # 1.56 periods of work on 1.7 cores
    # 1.56 periods of work on 0.85 of a core, and no more than that by two threads at once
    assert (half.candidates, half.every) == (231, 1)
    assert (whole.share, half.share) == (0.5, 0.425)
    assert (least.candidates, least.every) == (128, 3)
    assert not any(each.slow for each in (whole, half, least))
    # who has less than its threads computes for a shorter time
    for cores, given, budget in ((2.0, {}, None), (1.0, {}, 0.425), (1.0, {"budget": 0.3}, 0.3)):
        costing(monkeypatch, lambda _: cost, cores)
        found = fit(wanted(roles={"controller": given}), [])
        assert found.of("controller").get("budget") == budget


def test_each_part_is_timed_once_for_the_same_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_fit, "cache_directory", lambda: tmp_path)
    options = wanted(controller="rod_mpc").model_copy(update={"duration": 0.3})
    found = loop_cost(simulated(options))
    assert list(found.ticks) == ["simulator", "estimator", "reference", "rod_mpc"]
    assert all(0.0 < cost.seconds < math.inf for cost in found.ticks.values())
    assert all(cost.period == pytest.approx(PERIOD) for cost in found.ticks.values())
    assert found.node > 0.0
    monkeypatch.setattr(machine_fit, "run_system", lambda *_, **__: pytest.fail("timed again"))
    best = found.node / machine_fit.MESSAGES
    for python, slower in ((0.5 * best, 1.0), (3.0 * best, 3.0)):  # a host may be slower today
        monkeypatch.setattr(machine_fit, "_usual_python", lambda python=python: python)
        ticks = {
            name: replace(cost, seconds=pytest.approx(slower * cost.seconds))
            for name, cost in found.ticks.items()
        }
        again = loop_cost(simulated(options))
        assert again == replace(found, ticks=ticks, node=pytest.approx(slower * found.node))
    [kept] = tmp_path.iterdir()
    whole = json.loads(kept.read_text())
    halves = [{"ticks": whole["ticks"]}, whole | {"node": 0.0}]
    for broken in ("half a fi", *map(json.dumps, halves)):
        kept.write_text(broken)
        with pytest.raises(BaseException, match="timed again"):
            loop_cost(simulated(options))


def test_a_machine_that_was_busy_when_it_was_timed_is_timed_again_before_it_is_found_too_slow(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(machine_fit, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(machine_fit, "cores_that_can_be_had", lambda: 2.0)
    timed = []

    def measured(made):
        seconds = timed.pop(0)
        return {name: TickCost(seconds, PERIOD) for name in machine_fit._parts_timed(made)}

    monkeypatch.setattr(machine_fit, "_measured", measured)
    monkeypatch.setattr(machine_fit, "_usual_python", lambda: 0.0)
    options, lines = wanted(controller="rod_mpc"), []
    timed[:] = [10 * PERIOD]
    with pytest.raises(UserError, match="too slow: simulator and estimator and reference"):
        fitted(options, simulated, lines.append, False)
    timed[:] = [0.1 * PERIOD]
    assert fitted(options, simulated, lines.append, False) is options
    assert timed == []
    timed[:] = [20 * PERIOD]  # it fits as it is known now: nothing is timed
    assert fitted(options, simulated, lines.append, False) is options
    assert timed == [20 * PERIOD]


def test_of_a_nempc_all_candidates_are_timed_and_the_fewest_are_known(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_fit, "cache_directory", lambda: tmp_path)
    made = simulated(wanted(controller="nempc").model_copy(update={"duration": 0.3}))
    cost = loop_cost(made)
    told = made.blocks[made.roles["controller"]].describe()
    assert told["candidates_median"] == cost.candidates == 1000
    assert cost.least == 128


def test_the_loop_of_the_bench_is_timed_around_an_emulated_one(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_fit, "cache_directory", lambda: tmp_path)
    options = RehearsalOptions(robot="licher2025", duration=1.0, controller="rod_mpc")
    found = loop_cost(around_a_bench(options.model_copy(update={"duration": 0.3})))
    assert list(found.ticks) == ["estimator", "reference", "rod_mpc"]
    assert found.others > machine_fit.LOOKED_AT  # the valves' cycle


@pytest.mark.parametrize(("speed", "cores"), [(0.0, 0.0), (1e6, machine_fit.CORES)])
def test_cores_are_counted_by_the_processor_s_time(monkeypatch, speed, cores):
    """A quota lets it go more slowly than the clock; more than the cores there are never counts."""

    monkeypatch.setattr(free_cores.time, "thread_time", lambda: speed * time.perf_counter())
    assert cores_that_can_be_had() == cores


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_processes_keep_to_a_core_only_where_all_of_it_can_be_had(monkeypatch, share):
    before = os.sched_getaffinity(0)
    monkeypatch.setattr(free_cores.time, "thread_time", lambda: share * time.perf_counter())
    with on_one_core():
        inside = os.sched_getaffinity(0)
    assert inside == ({min(before)} if share == 1.0 else before)
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("least", "controller"), [(200, "nempc"), (300, "rod_mpc")])
def test_a_nempc_with_time_for_hardly_more_than_the_fewest_gives_way(
    monkeypatch, least, controller
):
    def cost(options):
        takes = 0.6 if options.controller == "nempc" else 0.1
        ticks = {options.controller: TickCost(takes * PERIOD, PERIOD, threads=2)}
        return LoopCost(ticks, 0.0, 0.0, 1000 * (takes > 0.5), least, share=0.5)

    costing(monkeypatch, cost)
    assert fit(wanted(), []).controller == controller  # it has time for 544 of 1000
