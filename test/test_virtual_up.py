"""Runs on virtual time from the command line: what is late, what is lost, what is refused."""

import json

import pytest
from kit.own_controllers import written
from rich.console import Console

from softcr_models.errors import UserError
from softcr_runtime.bags.reading import Bag
from softcr_runtime.blocks.system import Computing, Missing, Stop
from softcr_runtime.replay.bag_replay import ReplayTask
from softcr_tools.cli import main
from softcr_tools.replay.offline import replay
from softcr_tools.running.rehearse import RehearsalOptions
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.virtual_options import computing_of, missing_of, stops_of
from softcr_tools.running.virtual_rehearsal import rehearsed
from softcr_tools.running.virtual_up import late_system, simulated

VIRTUAL = ("up", "simulation", "--mode", "virtual", "--duration", "3")
POSES, PRESSURES, PLAN = "mocap/tip/pose", "pressure/state", "pressure/plan"


def options_of(kind=SimulationOptions, **words):
    given = {name.replace("__", "."): text for name, text in words.items()}
    return kind.of_options({"mode": "virtual", "controller": "rod_mpc"} | given)


def test_texts_become_what_they_say():
    assert computing_of("20") == Computing(0.02, 0.02)
    assert computing_of("5..35") == Computing(0.005, 0.035)
    assert computing_of(".5..1.5") == Computing(0.0005, 0.0015)
    assert stops_of("0.3@4.0, 1@6") == (Stop(0.3, 4.0), Stop(1.0, 6.0))
    assert missing_of("6@4.0/0.5,1@0") == (Missing(6, 4.0, 0.5), Missing(1, 0.0))
    assert stops_of("") == missing_of("") == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--controller.computing-ms", text),
            f"option controller.computing_ms = '{text}': must be milliseconds from 0 to 10000, or "
            "a range of them, such as 5..35",
        )
        for text in ("abc", "35..5", "5..", "10001", "nan", "inf", "1e3")
    ]
    + [
        (("--controller.computing-ms=-3",), "controller.computing_ms = '-3': must be milliseconds"),
        (("--plant.stops", "0.3"), "option plant.stops = '0.3': must be SECONDS@TIME, such as"),
        (("--plant.stops", "0@1"), "option plant.stops = '0@1': must be SECONDS@TIME"),
        (("--camera.missing", "6@"), "option camera.missing = '6@': must be COUNT@TIME or"),
        (("--camera.missing", "1.5@4"), "option camera.missing = '1.5@4': must be COUNT@TIME or"),
        (("--commands.missing", "6@4/0"), "option commands.missing = '6@4/0': must be COUNT@TIME"),
        (("--lost", "1.5"), "option lost = 1.5: must be a number from 0.0 to 1.0"),
        (("--controller", "none"), "controller = 'none': has no meaning for mode 'virtual'"),
        (("--reference", "goal"), "reference = 'goal': has no meaning for mode 'virtual'"),
        (("--visuals", "on"), "visuals = 'on': has no meaning for mode 'virtual'"),
    ],
)
def test_what_is_malformed_is_refused_in_one_line(words, said, capsys, tmp_path):
    assert main([*VIRTUAL, *words, "--results", str(tmp_path / "none")]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert said in error
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "words", ["up simulation --mode wall", "up simulation --mode lockstep", "rehearse --mode wall"]
)
def test_in_other_modes_what_is_of_virtual_time_is_refused(words, capsys):
    *_, mode = words.split()
    for name, text in (("camera.missing", "6@4"), ("estimator.computing_ms", "3")):
        assert main([*words.split(), f"--{name.replace('_', '-')}", text]) == 2
        line = f"option {name}: has no meaning in mode '{mode}'; goes with --mode virtual"
        assert capsys.readouterr().err == f"softcr: error: {line}\n"


def test_the_rehearsal_says_what_a_bench_without_protocols_has_not(capsys):
    assert main(["rehearse", "--mode", "virtual", "--valves.station", "regulators"]) == 2
    assert "option valves.station: has no meaning for mode 'virtual'" in capsys.readouterr().err


def test_options_reach_the_parts_and_their_wires():
    options = options_of(
        robot="licher2025", estimator__stops="0.1@2", controller__computing_ms="5..35",
        camera__missing="6@1/0.5", commands__missing="2@3", lost="0.01",
    )  # fmt: skip
    system = late_system(simulated(options), options)
    computing = {part.name: part.computing for part in system.parts}
    assert (computing["rod_mpc"].shortest, computing["rod_mpc"].longest) == (0.005, 0.035)
    assert computing["estimator"].shortest == 0.002
    assert computing["estimator"].stops == (Stop(0.1, 2.0),)
    assert (computing["simulator"].shortest, computing["simulator"].stops) == (0.0, ())
    wires = {part.name: part.wires for part in system.parts}
    assert wires["estimator"][POSES].missing == (Missing(6, 1.0, 0.5),)
    assert wires["estimator"][PRESSURES].missing == ()
    assert wires["simulator"][PLAN].missing == (Missing(2, 3.0),)
    every = [wire for each in wires.values() for wire in each.values()]
    assert all(wire.lost == pytest.approx(0.01) and wire.latency == 0.0 for wire in every)
    assert len({wire.seed for wire in every}) == len(every) > 5  # each loses others


def test_what_nobody_hears_or_plays_is_refused():
    arm = {"robot": "dalenberg_robot1", "controller": "apcc", "estimator__stops": "1@1"}
    rod = {"robot": "licher2025", "wrenches__missing": "1@1"}
    nobody = "nobody listens to force_torque/wrench in"
    for given, why in ((rod, nobody), (arm, "this run has no estimator")):
        options = options_of(**given)
        with pytest.raises(UserError, match=f"no meaning here: {why}"):
            late_system(simulated(options), options)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two results directories of the same words, and what was said."""
    home = tmp_path_factory.mktemp("runs")
    words = (*VIRTUAL, "--controller", "rod_mpc", "--controller.computing-ms", "5..35")
    found = []
    for name in ("one", "other"):
        assert main([*words, "--results", str(home / name)]) == 0
        found.append(home / name / "latest")
    return found


def test_a_run_has_all_that_other_runs_have(runs):
    directory = runs[0].resolve()
    assert (directory / "report.html").stat().st_size > 10_000
    summary = json.loads((directory / "summary.json").read_text())
    assert summary["mode"] == "virtual"
    assert summary["duration_s"] == pytest.approx(3.0, abs=0.1)
    assert summary["tip_aed_mm"] < 5.0
    loops = summary["loops"]
    assert 5.0 <= loops["rod_mpc"]["p50_ms"] <= loops["rod_mpc"]["max_ms"] <= 35.0
    # it skips what it cannot answer: about 20 ms for each of its answers
    assert 120 <= loops["rod_mpc"]["cycles"] <= 180
    assert loops["rod_mpc"]["missed_cycles"] > 50
    assert loops["estimator"]["max_ms"] == pytest.approx(2.0)
    assert loops["simulator"]["cycles"] == 210
    told = json.loads((directory / "system.json").read_text())
    assert (told["ended_by"], told["exit_code"]) == ("duration", 0)
    assert told["options"]["virtual"]["controller"]["computing_ms"] == "5..35"


def test_equal_words_give_bags_that_are_equal_to_the_bit_and_come_back_so(runs, tmp_path):
    one, other = (
        [(each.topic, each.time, each.payload) for each in bag.messages(*bag.topics)]
        for bag in (Bag(directory / "bag") for directory in runs)
    )
    assert len(one) > 1000
    assert one == other
    task = ReplayTask(True, None, {})
    again = replay(Bag(runs[0] / "bag"), task, tmp_path / "again", Console(quiet=True))
    for counts in (again.estimates, again.commands):
        assert counts.identical == counts.compared == counts.recorded > 100


@pytest.mark.later
def test_a_bench_on_virtual_time_follows_and_loses_frames(tmp_path):
    words = ["rehearse", "--mode", "virtual", "--duration", "2", "--camera.missing", "3@1"]
    assert main([*words, "--results", str(tmp_path)]) == 0
    summary = json.loads((tmp_path / "latest" / "summary.json").read_text())
    assert summary["tip_aed_mm"] < 2.0
    assert (tmp_path / "latest" / "report.html").exists()


@pytest.mark.later
def test_a_bench_on_virtual_time_that_vents_says_why(tmp_path, capsys):
    words = ["rehearse", "--mode", "virtual", "--duration", "2", "--camera.missing", "1000@1"]
    assert main([*words, "--results", str(tmp_path)]) == 1
    assert "softcr: error: the valves vented: " in capsys.readouterr().err
    assert json.loads((tmp_path / "latest" / "system.json").read_text())["ended_by"] == "failure"


def test_frames_that_are_missing_are_so_for_valves_and_filter():
    options = options_of(RehearsalOptions, camera__missing="6@4")
    system = late_system(rehearsed(options), options)
    heard = {part.name: part.wires[POSES] for part in system.parts if POSES in part.wires}
    assert heard.keys() == {"estimator", "valves"}
    assert heard["estimator"] == heard["valves"]
    assert heard["valves"].missing == (Missing(6, 4.0),)
    assert heard["valves"].latency == 0.005


@pytest.mark.later
def test_ctrl_c_ends_a_run_with_its_bag_and_its_report(tmp_path):
    mine = written(tmp_path / "mine.py", "== 100", "os.kill(os.getpid(), signal.SIGINT)")
    words = [*VIRTUAL[:-1], "60", "--controller", mine, "--results", str(tmp_path)]
    assert main(words) == 0
    directory = tmp_path / "latest"
    summary = json.loads((directory / "summary.json").read_text())
    assert summary["loops"]["controller"]["cycles"] == 100
    assert json.loads((directory / "system.json").read_text())["ended_by"] == "interrupt"
    last = list(Bag(directory / "bag").messages("/pressure/plan"))[-1].decode()
    assert not any(last.points[-1].effort)  # it leads to a vented arm


@pytest.mark.later
def test_a_controller_that_raises_once_is_a_failed_run_and_its_line_comes_first(
    tmp_path, capsys, monkeypatch
):
    mine = written(tmp_path / "mine.py", "== 20", 'raise ZeroDivisionError("no idea")')
    words = ["--robot", "licher2025", "--plant.plant-errors", "same_structure", "--reference"]
    words += ["setpoint", "--controller", mine, "--results", str(tmp_path / "results")]
    monkeypatch.setattr("sys.argv", ["softcr", *VIRTUAL, *words])
    assert main([*VIRTUAL, *words]) == 1
    (summary,) = (tmp_path / "results").glob("2*/summary.json")
    numbers = json.loads(summary.read_text())
    assert numbers["verdict"]["failed"]
    begin = "NOT good: controller: Mine.tick: ZeroDivisionError: no idea (mine.py, line "
    assert numbers["verdict"]["line"].startswith(begin)
    assert numbers["command"].startswith("softcr ")
    page = summary.with_name("report.html").read_text()
    title = page.partition("<title>")[2].partition("</title>")[0]
    assert "controller" in title
    assert "plant same_structure" in title
    assert f"softcr {numbers['softcr']}" in page
