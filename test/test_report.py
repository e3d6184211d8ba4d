"""The report of synthetic runs whose numbers are known beforehand."""

import base64
import csv
import io
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from kit.bags import (
    ESTIMATE_OFFSET,
    LOOP,
    OFFSET,
    PERIOD,
    QOS,
    TYPES,
    TYPESTORE,
    circle,
    closed_loop,
    cloud,
    diagnostics,
    joint_state,
    numbers_of,
    pose_stamped,
    reference_cloud,
    ticks,
    without,
    wrench,
    write_bag,
)
from rich.console import Console

from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_papers.constant_curvature.kinematics import coordinates_of_tip
from softcr_papers.mehl2024.arc_report import ARC
from softcr_runtime.bags.recording import BagRecording, RecordedTopic
from softcr_runtime.bags.signals import NodeStatus, Signal
from softcr_runtime.wire.rod_clouds import FORCE_FIELDS
from softcr_runtime.wire.topics import TOPICS
from softcr_tools import report
from softcr_tools.report.page import filled
from softcr_tools.report.sections import _silences

DECODED = {
    "simulation/truth/tip/pose", "simulation/truth/rod", "mocap/tip/pose", "estimate/tip/pose",
    "estimate/rod", "reference/rod", "pressure/sent", "pressure/state", "force_torque/wrench",
    "/diagnostics",
}  # fmt: skip


@pytest.fixture(scope="module")
def complete_run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    write_bag(directory / "bag", closed_loop())
    return directory, report.build(directory / "bag", directory)


def test_the_numbers_are_those_put_in(complete_run):
    _, summary = complete_run
    count, first_second = round(8.0 / PERIOD), round(1.0 / PERIOD)
    aed = (3 * first_second + (count - first_second)) / count
    assert summary["tip_aed_mm"] == pytest.approx(aed, rel=1e-9)
    assert summary["tip_aed_percent_of_length"] == pytest.approx(aed / 1.25, rel=1e-9)
    assert summary["tip_aed_settled_mm"] == pytest.approx(1.0, rel=1e-9)
    assert summary["tip_error_max_mm"] == pytest.approx(3.0, rel=1e-9)
    assert summary["setpoint_error_mm"] is None  # the reference moves
    assert summary["estimate_tip_aed_mm"] == pytest.approx(0.5, rel=1e-9)
    assert summary["duration_s"] == pytest.approx(8.0 - PERIOD, abs=1e-6)
    compliance = summary["bending_compliance"]
    assert (compliance["true"], compliance["initial"], compliance["std"]) == (48.0, 49.9, 0.25)
    assert compliance["error_percent"] == pytest.approx(2 * (1 - (8.0 - PERIOD) / 10), abs=1e-6)
    assert compliance["worst_error_percent"] == pytest.approx(1.0, abs=2 * PERIOD / 10)
    wrench, pressure = summary["wrench"], summary["pressure"]
    assert wrench["force_mean_n"] == pytest.approx(5.0)
    assert wrench["moment_max_nm"] == pytest.approx(0.1)
    assert (pressure["commanded_min_kpa"], pressure["commanded_max_kpa"]) == (0.0, 50.0)
    assert pressure["measured_min_kpa"] == 21.0
    assert pressure["at_limit_percent"] == pytest.approx(10.0)
    assert summary["problems"] == [
        f"{node}: rejected stale, 2 times"
        for node in ("simulator", "estimator", "nempc_controller", "reference")
    ]


ARC_OFFSET = np.array([2e-3, -1e-3, 0.5e-3])  # of the estimated coordinates [m]


def arc_cloud(stamp: int, coordinates: np.ndarray) -> object:
    values = [*coordinates, 0.0, 0.0, 0.0, 500.0]
    names = [field for name in ARC for field in (name, f"{name}_std")]
    table = np.stack([values, np.full(7, 0.1)], axis=1).reshape(1, 1, -1)
    return cloud(stamp, table, names)


def test_an_arc_is_scored_against_the_one_to_the_true_tip(tmp_path):
    messages = without(closed_loop(2.0), "estimate/rod")
    rods = [(stamp, cloud) for topic, stamp, cloud in messages if topic == "simulation/truth/rod"]
    truth = []
    for stamp, message in rods:
        line = np.frombuffer(message.data).reshape(12, -1)[:, :3]
        truth.append(coordinates_of_tip(line[-1] - line[1], 0.125, 0.021))
        arc = arc_cloud(stamp, truth[-1] + ARC_OFFSET)
        messages.append(("estimate/constant_curvature", stamp, arc))
    summary = numbers_of(write_bag(tmp_path / "bag", messages))
    counted = np.abs(truth)[7:].max(axis=0)  # without the first 0.1 s
    expected = dict(zip(ARC[:3], 100 * np.abs(ARC_OFFSET) / counted, strict=True))
    scores = summary["constant_curvature"]["nrmse_percent"]
    assert {name: scores[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert scores["delta_x_rate"] == pytest.approx(100 / np.sqrt(2), rel=0.2)  # it says 0
    assert summary["constant_curvature"]["bending_stiffness"] == 500.0
    assert not any("nothing was recorded" in line for line in summary["problems"])
    assert any("N/m" in note for _, _, note in summary.figures)


def test_summary_json_has_the_agreed_keys(complete_run):
    directory, summary = complete_run
    content = json.loads((directory / "summary.json").read_text())
    assert content["tip_aed_mm"] == summary["tip_aed_mm"]
    assert set(content["bending_compliance"]) >= {"true", "estimated", "initial"}
    for node in ("simulator", "estimator", "nempc_controller"):
        told = {name: content[node][name] for name in LOOP if name in content[node]}
        assert told == {name: LOOP[name] for name in told}
        assert set(told) >= {
            "rate_hz", "p50_ms", "p99_ms", "max_ms", "missed_cycles", "cycles", "rejected_messages",
        }  # fmt: skip
    expected = {
        "population": 1000, "horizon": 8, "mode": "wall", "seed": 7, "reference": "circle",
        "plant_mismatch": {"bending_compliance": -0.05},
    }  # fmt: skip
    assert {name: content[name] for name in expected} == expected
    assert content["other_nodes"]["reference"]["cycles"] == 700


def test_the_report_is_one_file_that_needs_nothing_else(complete_run):
    directory, _ = complete_run
    page = (directory / "report.html").read_text()
    assert re.findall(r"""(?:src|href)=["'](?!data:)""", page) == []
    assert "http" not in page
    figures = sorted(path.stem for path in (directory / "figures").glob("*.png"))
    assert figures == [
        "bending_compliance", "pressures", "shape", "tick_times", "tip_error", "tip_path",
        "tip_tracking",
    ]  # fmt: skip
    assert page.count("data:image/png;base64,") == len(figures)
    for path in (directory / "figures").glob("*.png"):
        assert base64.b64encode(path.read_bytes()).decode() in page
    assert "1.25 mm" in page  # the AED
    assert "3 (0.4 %)" in page


def shown(summary, width=80):
    """What a terminal shows of a summary."""
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(summary.table())
    return console.export_text()


def test_the_terminal_shows_one_screen(complete_run):
    _, summary = complete_run
    text = shown(summary)
    assert len(text.splitlines()) <= 24
    for expected in ("1.25 mm", "0.50 mm", "48.19", "nempc_controller", "69.9", "3 (0.4 %)"):
        assert expected in text
    assert "rejected stale" in text


def test_the_command_computes_the_same_again(complete_run, capsys, without_figures):
    directory, _ = complete_run
    before = (directory / "summary.json").read_text()
    for name in ("summary.json", "report.html"):
        (directory / name).unlink()
    assert report.report(directory / "bag") == 0
    assert (directory / "summary.json").read_text() == before
    assert (directory / "report.html").exists()
    assert "1.25 mm" in capsys.readouterr().out


def test_the_samples_of_a_run_are_a_table_with_units(tmp_path):
    messages = closed_loop(0.5)
    lost = [each for each in messages if each[0] != "mocap/tip/pose" or each[1] % 3]
    write_bag(tmp_path / "bag", lost)
    report.report(tmp_path / "bag", csv=tmp_path / "run.csv")
    assert not (tmp_path / "bag_report").exists()
    with (tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == round(0.5 / PERIOD)
    stamps, tips = ticks(0.5), circle(ticks(0.5))
    for row, stamp, goal in zip(rows, stamps, tips, strict=True):
        assert float(row["time [s]"]) == pytest.approx((stamp - stamps[0]) * 1e-9, abs=1e-12)
        assert float(row["reference_y [m]"]) == goal[1]
        assert float(row["true_x [m]"]) == (goal + 3 * OFFSET)[0]
        assert float(row["estimate_z [m]"]) == (goal + 3 * OFFSET + ESTIMATE_OFFSET)[2]
        assert float(row["pressure_1 [Pa]"]) == 2.1e4
        assert float(row["command_2 [Pa]"]) == 5e4
        assert float(row["moment_y [N m]"]) == 0.1
        if stamp % 3:
            assert float(row["tip_x [m]"]) == (goal + 3 * OFFSET + 1e-4)[0]
        else:
            assert row["tip_x [m]"] == row["tip_qw [-]"] == ""
    with pytest.raises(UserError, match="exclude each other"):
        report.report(tmp_path / "bag", csv=tmp_path / "a.csv", output=tmp_path)
    with pytest.raises(UserError, match=r"none/run.csv: cannot be written: No such file"):
        report.report(tmp_path / "bag", csv=tmp_path / "none/run.csv")


@pytest.fixture
def without_figures(monkeypatch):
    monkeypatch.setattr(report, "draw_figures", lambda run, directory: [])


def test_a_bag_from_elsewhere_gets_a_report_of_its_own(tmp_path, without_figures):
    write_bag(tmp_path / "lab_7", without(closed_loop(0.5), "simulation/truth/rod"))
    report.report(tmp_path / "lab_7")
    assert (tmp_path / "lab_7_report" / "summary.json").exists()
    assert not (tmp_path / "summary.json").exists()


def test_a_setpoint_is_judged_after_two_seconds(tmp_path):
    def standing(stamps):
        return np.tile([0.02, 0.0, 0.11], (len(stamps), 1))

    summary = numbers_of(write_bag(tmp_path / "bag", closed_loop(3.0, standing)))
    assert summary["setpoint_error_mm"] == pytest.approx(1.0, rel=1e-9)
    assert summary["setpoint_error_max_mm"] == pytest.approx(1.0, rel=1e-9)
    assert summary["tip_aed_mm"] > 1.5


def test_what_follows_the_venting_command_is_not_the_controllers_error(tmp_path):
    messages = closed_loop(2.0)
    stamps = ticks(2.5)[round(2.0 / PERIOD) :]
    messages.append(("pressure/sent", stamps[0] + 10**6, joint_state(stamps[0] + 10**6, [0] * 3)))
    fallen, goal = np.array([0.0, 0.0, 0.05]), np.array([0.03, 0.0, 0.11])
    for stamp in stamps:  # the rod falls, the reference goes on
        messages += [
            ("simulation/truth/tip/pose", stamp, pose_stamped(stamp, fallen)),
            ("pressure/state", stamp, joint_state(stamp, [0.0, 0.0, 0.0])),
            ("reference/rod", stamp, reference_cloud(stamp, goal)),
        ]
    summary = numbers_of(write_bag(tmp_path / "bag", messages))
    assert summary["tip_error_max_mm"] == pytest.approx(3.0, rel=1e-9)
    assert summary["tip_aed_mm"] == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("later", [0, 3_000_000])  # valves play at times of their own [ns]
def test_on_hardware_mocap_takes_the_place_of_the_truth(tmp_path, later):
    truth = ("simulation/truth/tip/pose", "simulation/truth/rod")
    messages = without(closed_loop(3.0), *truth, "pressure/sent")
    for topic, stamp, message in closed_loop(3.0):
        if topic == "pressure/sent":
            messages.append((topic, stamp + later, joint_state(stamp + later, message.effort)))
    summary = numbers_of(write_bag(tmp_path / "bag", messages))
    seen = np.linalg.norm(OFFSET + 1e-4) * 1e3
    assert summary["tip_aed_settled_mm"] == pytest.approx(seen, rel=1e-9)
    assert summary["estimate_tip_aed_mm"] is None
    assert summary["bending_compliance"]["true"] is None
    assert summary["bending_compliance"]["estimated"] == pytest.approx(48.6, abs=0.1)
    assert any("against mocap" in line for line in summary["problems"])
    assert any("simulation/truth/rod" in line for line in summary["problems"])


@pytest.mark.parametrize(
    "topics",
    [
        ["reference/rod"],
        ["estimate/rod", "estimate/tip/pose", "pressure/sent"],  # a dead estimator
        ["/diagnostics"],
        ["pressure/sent"],
        ["pressure/state"],
        sorted(set(TOPICS) - {"pressure/state"}),
        sorted(set(TOPICS) - {"/diagnostics"}),
        sorted(set(TOPICS) - {"estimate/rod"}),
    ],
)
def test_a_run_with_holes_is_reported_as_far_as_it_goes(tmp_path, topics):
    """Of a robot that is told in full, as that of a simulator is."""
    stamp, robot = ticks(0.5)[-1], load_robot("licher2025").model_dump(mode="json")
    told = ("/diagnostics", stamp, diagnostics(stamp, "simulator", LOOP | {"robot": robot}))
    write_bag(tmp_path / "bag", without([*closed_loop(0.5), told], *topics))
    summary = report.build(tmp_path / "bag", tmp_path)
    assert any(
        all(topic in line for topic in topics if topic in DECODED) for line in summary["problems"]
    )
    if "reference/rod" in topics:
        assert summary["tip_aed_mm"] is None
    if "/diagnostics" in topics:
        assert summary["simulator"]["p99_ms"] is None
        assert summary["tip_aed_percent_of_length"] is None
    json.loads((tmp_path / "summary.json").read_text(), parse_constant=pytest.fail)  # no NaN
    assert (tmp_path / "report.html").exists()


def test_a_dead_node_is_named(tmp_path, without_figures):
    dies_at = ticks(6.0)[0] + 2.0e9

    def is_heard(topic, stamp, message):
        said = topic == "/diagnostics" and message.status[0].name.startswith("estimator")
        return not said or stamp <= dies_at

    write_bag(tmp_path / "bag", [entry for entry in closed_loop(6.0) if is_heard(*entry)])
    death = {"node": "estimator", "signal": 9, "exit_code": None, "time": 5.1}
    system = {"deaths": [death], "error": "node estimator died (signal 9)", "ended_by": "death"}
    (tmp_path / "system.json").write_text(json.dumps(system))
    summary = report.build(tmp_path / "bag", tmp_path)
    assert summary["node_deaths"] == [death]
    assert "node estimator died (signal 9)" in (tmp_path / "report.html").read_text()
    (tmp_path / "system.json").write_text("{ broken")
    summary = report.build(tmp_path / "bag", tmp_path)  # the bag alone tells less, but it tells
    assert summary["node_deaths"] == []
    silences = [line for line in summary["problems"] if "silent" in line]
    assert silences == ["estimator fell silent 4.0 s before the end of the recording"]


def test_a_node_that_told_its_configuration_alone_said_nothing():
    told = NodeStatus(values={"robot": {"name": "licher2025"}})
    heard = NodeStatus(last_heard=9_000_000_000)
    bag = SimpleNamespace(nodes={"plant": told, "estimator": heard}, last_heard=10_000_000_000)
    assert [*_silences(SimpleNamespace(bag=bag))] == ["plant said nothing in /diagnostics"]


def test_bad_messages_are_left_out_and_named(tmp_path):
    messages = closed_loop(3.0)
    bad = ticks(3.0)[100] + 10
    messages += [
        ("simulation/truth/tip/pose", bad, pose_stamped(bad, np.array([np.nan, 0, 0]))),
        ("mocap/tip/pose", bad, joint_state(bad, np.zeros(3))),
    ]
    names = {topic: topic if topic[0] == "/" else f"/left/{topic}" for topic in TOPICS}
    topics = [RecordedTopic(name, TOPICS[topic].type, QOS) for topic, name in names.items()]
    recording = BagRecording(tmp_path / "bag", topics)
    for topic, stamp, message in messages:
        payload = bytes(TYPESTORE.serialize_cdr(message, message.__msgtype__))
        recording.write(names[topic], int(stamp), payload)
    recording.close()
    summary = numbers_of(tmp_path / "bag")  # in a namespace, too
    assert summary["tip_aed_settled_mm"] == pytest.approx(1.0, rel=1e-9)
    left_out = [line for line in summary["problems"] if "left out 1" in line]
    assert len(left_out) == 2
    assert any("position.x = nan" in line for line in left_out)
    assert any("/left/mocap/tip/pose" in line for line in left_out)


def test_alarms_are_listed_once_and_not_without_end(tmp_path):
    messages = closed_loop(1.0)
    for number in range(12):
        stamp = ticks(1.0)[0] + 10**7 * number
        line = f"{number} messages rejected" if number < 8 else f"{'abcd'[number - 8]} is odd"
        messages.append(("/diagnostics", stamp, diagnostics(stamp, "simulator", LOOP, 1, line)))
    numbers = numbers_of(write_bag(tmp_path / "bag", messages))
    assert [line for line in numbers["problems"] if "simulator" in line] == [
        "simulator: rejected stale, 2 times",
        "simulator: warning: 7 messages rejected (and 7 more like it)",
        "simulator: warning: a is odd",
        "simulator: warning: b is odd",
        "simulator: 2 more warnings",
    ]


def test_a_report_that_cannot_be_written_is_one_line(tmp_path):
    write_bag(tmp_path / "bag", closed_loop(0.2))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write the report to .*file: File exists"):
        report.build(tmp_path / "bag", tmp_path / "file")
    with pytest.raises(UserError, match="nowhere: no such file"):
        report.build(tmp_path / "nowhere", tmp_path)


def test_a_series_between_its_samples_is_linear_and_bridges_no_long_hole():
    stamps = np.array([0, 10, 20, 60, 70]) * 10**6
    series = Signal(stamps, np.stack([stamps, -stamps], axis=1).astype(float))
    asked = np.array([-1, 0, 3, 20, 40, 61, 70, 71]) * 10**6
    found = series.at(asked, longest_hole=0.03)
    assert found.stamps.tolist() == [0, 3 * 10**6, 20 * 10**6, 61 * 10**6, 70 * 10**6]
    assert found.values == pytest.approx(np.stack([found.stamps, -found.stamps], axis=1))
    assert len(Signal(stamps[:1], series.values[:1]).at(asked, 1.0)) == 0


def test_every_transition_of_safety_is_told_with_its_time(tmp_path):
    messages = closed_loop(1.0)
    words = ["vent now: not enabled yet", "none: enabled", "none: enabled", "hold: poses late"]
    for number, message in enumerate(words):
        status = TYPES["diagnostic_msgs/msg/DiagnosticStatus"](
            level=0, name="valves: safety", message=message, hardware_id="", values=[]
        )
        messages.append(("safety/state", ticks(1.0)[0] + 2 * 10**8 * number, status))
    summary = numbers_of(write_bag(tmp_path / "bag", messages))
    assert [row["what"] for row in summary["safety"]] == [words[0], words[1], words[3]]
    assert [row["time_s"] for row in summary["safety"]] == pytest.approx([0.0, 0.2, 0.6], abs=0.01)
    for text in (shown(summary), summary.html([])):
        assert "s: hold: poses late" in text


def test_parameters_that_were_changed_are_told_with_their_time(tmp_path):
    empty = {"bool_value": False, "integer_value": 0, "double_value": 0.0, "string_value": ""}
    for kind, of_numpy in {"byte": "u1", "bool": "?", "integer": "i8", "double": "f8"}.items():
        empty[f"{kind}_array_value"] = np.array([], of_numpy)
    empty["string_array_value"] = []
    none = {"new_parameters": [], "changed_parameters": [], "deleted_parameters": []}
    zero = TYPES["builtin_interfaces/msg/Time"](sec=0, nanosec=0)

    def event(node, **of_kind):
        ((kind, parameters),) = of_kind.items()
        values = {name: TYPES["rcl_interfaces/msg/ParameterValue"](**empty | value)
                  for name, value in parameters.items()}  # fmt: skip
        made = [TYPES["rcl_interfaces/msg/Parameter"](*each) for each in values.items()]
        kind_of_event = TYPES["rcl_interfaces/msg/ParameterEvent"]
        return kind_of_event(stamp=zero, node=node, **none | {kind: made})

    weight = {"costs.input_rate": {"type": 3, "double_value": 0.3}}
    others = {
        "robust": {"type": 1, "bool_value": True},
        "gains": {"type": 8, "double_array_value": np.array([1.0, 2.5])},
        "label": {"type": 0},
    }
    messages, first = closed_loop(1.0), ticks(1.0)[0]
    told = [
        event("/nempc_controller", new_parameters=weight),
        event("/nempc_controller", changed_parameters=weight),
        event("/estimator", changed_parameters=others),
    ]
    for number, each in enumerate(told):
        messages.append(("/parameter_events", first + 2 * 10**8 * number, each))
    summary = numbers_of(write_bag(tmp_path / "bag", messages))
    assert [row["what"] for row in summary["parameter_changes"]] == [
        "nempc_controller: costs.input_rate = 0.3", "estimator: robust = True",
        "estimator: gains = [1.0, 2.5]", "estimator: label = not set",
    ]  # fmt: skip
    times = [row["time_s"] for row in summary["parameter_changes"]]
    assert times == pytest.approx([0.2, 0.4, 0.4, 0.4], abs=0.01)
    assert "s: nempc_controller: costs.input_rate = 0.3" in shown(summary)
    assert "<h2>Parameters changed during the run</h2>" in summary.html([])
    without_changes = numbers_of(write_bag(tmp_path / "without", closed_loop(1.0)))
    assert "parameter_changes" not in without_changes.numbers
    assert "Parameters changed" not in without_changes.html([])


def told_by_plant(settings, mismatch, **values):
    """Messages of a run whose simulator describes itself so."""
    stamp = ticks(1.0)[-1] + 1
    said = LOOP | {"settings": settings, "plant_mismatch": mismatch, **values}
    models = {"estimator": {"model": "", "intervals": 5, "estimator": "rod"}}
    models["nempc_controller"] = {"model": "ddpinn", "intervals": 5, "controller": "nempc"}
    return [
        ("/diagnostics", stamp, diagnostics(stamp, node, LOOP | {"settings": told}))
        for node, told in models.items()
    ] + [("/diagnostics", stamp, diagnostics(stamp, "simulator", said))]


def test_the_report_says_what_of_the_plant_is_exact_and_what_is_not(tmp_path):
    mismatch = {"bending_compliance": -0.05, "damping": 0.0, "intervals": 10, "tip_noise_mm": 0.2}
    mismatch |= {"pressure_noise_pa": 0.0, "missing_poses": 0.2}
    errors = {"force_noise": 0.02, "moment_noise": 0.0}
    said = told_by_plant({"plant": "rod"}, mismatch, plant_errors=errors)
    write_bag(tmp_path / "bag", [*closed_loop(1.0), *said])
    summary = report.build(tmp_path / "bag", tmp_path)
    plant = json.loads((tmp_path / "summary.json").read_text())["plant"]
    assert plant["simulated"]
    assert plant["unknown"] == []
    assert {
        "same equations as the model of estimator (rod)", "damping of the robot file",
        "no pressure noise", "base moment: no noise",
    } <= {*plant["exact"]}  # fmt: skip
    assert plant["differs"] == [
        "equations: plant rod, controller ddpinn", "bending compliance -5 %",
        "intervals: plant 10, controller 5, estimator 5", "tip noise 0.2 mm", "missing poses 0.2",
        "base force: noise 0.02 N",
    ]  # fmt: skip
    page, text = (tmp_path / "report.html").read_text(), " ".join(shown(summary, 200).split())
    for line in plant["exact"] + plant["differs"]:
        assert line in page
        assert line in text


def test_the_report_says_what_a_structural_plant_is(tmp_path):
    errors = {"bending_factor": 0.95, "pressure_bias": [300.0, -200.0, 100.0], "hose_pole": 60.0}
    mismatch = {"bending_compliance": -0.05, "intervals": 20, "pressure_noise_pa": 0.0}
    settings = {"plant_errors": "typical"}
    said = told_by_plant(settings, mismatch, plant_model="beam", plant_errors=errors)
    summary = numbers_of(write_bag(tmp_path / "bag", [*closed_loop(1.0), *said]))
    assert summary["plant_errors"] == {"name": "typical", "fields": errors}
    plant = summary["plant"]
    assert {
        "equations: plant beam, controller ddpinn, estimator rod", "bending compliance -5 %",
        "pressure bias 300, -200, 100 Pa", "hose pole 60 1/s",
    } <= {*plant["differs"]}  # fmt: skip
    assert "pressure lag of the robot file" in plant["exact"]
    assert not any("same equations" in line for line in plant["exact"])
    said = told_by_plant(
        settings, mismatch, plant_model="beam", plant_errors={"lag_pole_factor": 2}
    )
    plant = numbers_of(write_bag(tmp_path / "slow", [*closed_loop(1.0), *said]))["plant"]
    assert "pressure lag of the robot file" not in plant["exact"]
    assert "lag pole factor 2" in plant["differs"]


def test_a_plant_that_tells_nothing_is_not_called_exact(tmp_path):
    place = "examples/spring_plant.py:SpringPlant"
    messages = [*closed_loop(1.0), *told_by_plant({"plant": place}, None)]
    plant = numbers_of(write_bag(tmp_path / "bag", messages))["plant"]
    assert plant["exact"] == plant["differs"] == []
    assert place in plant["unknown"][0]
    truth = ("simulation/truth/tip/pose", "simulation/truth/rod", "/diagnostics")
    bench = numbers_of(write_bag(tmp_path / "bench", without(closed_loop(1.0), *truth)))
    assert not bench["plant"]["simulated"]


def test_a_key_figure_shows_digits_and_unit_and_a_dash_for_nothing():
    numbers = {"a": 2.0, "none": None, "row": [1.0, 2.25], "nil": []}
    told = filled(numbers, "{a:1} to {a:0 1/s}", "{none:2 mm}, {row} and {nil}")
    assert told == ["2.0 to 2 1/s", "-, 1.0, 2.2 and -"]


def forces_of(stamp, *points):
    """A cloud of places and forces (6,) each; without moments."""
    rows = np.array(points, float).reshape(-1, 6)
    return cloud(stamp, np.hstack((rows, 0.0 * rows[:, 3:]))[np.newaxis], [*FORCE_FIELDS])


def test_loads_and_contact_stand_beside_the_error_of_their_time(tmp_path):
    """The tip is 3 mm off in the first second, when the load acts, and then 1 mm."""
    messages = closed_loop(3.0)
    stamps = ticks(3.0)
    for k, stamp in enumerate(stamps):
        acting = k < 35  # half a second
        load = forces_of(stamp, [0, 0, 0.1, 0.3 * acting, 0, 0])
        contact = wrench(stamp, np.array([0, 0, 2.0, 0, 0, 0]) * (k >= len(stamps) - 70))
        messages.append(("simulation/truth/loads", stamp, load))
        messages.append(("simulation/truth/contact/wrench", stamp, contact))
    ball = {"obstacles": [{"type": "sphere", "centre": [0, 0, 1], "radius": 0.1}]}
    told = {"loads": ["pull: dead force"], "obstacles": ball}
    messages += told_by_plant({"plant": "rod"}, {}, **told)
    summary = numbers_of(write_bag(tmp_path / "bag", messages))
    loads, contact = summary["loads"], summary["contact"]
    assert loads["load_force_max_n"] == pytest.approx(0.3)
    assert loads["loaded_s"] == pytest.approx(0.5, abs=0.01)
    assert loads["tip_aed_loaded_mm"] == pytest.approx(3.0)
    assert contact["contact_force_max_n"] == pytest.approx(2.0)
    assert contact["contact_s"] == pytest.approx(1.0, abs=0.01)
    assert contact["tip_aed_contact_mm"] == pytest.approx(1.0)
    assert "sphere_1: sphere of radius 0.1 m at (0, 0, 1) m" in contact["with"]
    assert {"load pull: dead force"} <= {*summary["plant"]["differs"]}
    for force in ("0.300", "2.000"):
        assert f"{force} N at most" in summary.html([])


@pytest.mark.parametrize("told", [7, "pull", {"a": 1}, [[1]]])
def test_what_a_foreign_simulator_says_of_its_loads_breaks_no_report(tmp_path, told):
    messages = [*closed_loop(0.5), *told_by_plant({}, {}, loads=told, obstacles=told)]
    messages.append(("simulation/truth/loads", ticks(0.5)[0], forces_of(ticks(0.5)[0])))
    summary = numbers_of(write_bag(tmp_path / "bag", messages))
    assert summary["loads"]["load_force_max_n"] is None
    assert "tip_aed_mm" in summary.numbers


def test_a_reference_that_stops_at_its_end_is_no_error_of_the_controller(tmp_path):
    """The last horizon before the end: 100 mm off, and all pressure that there is."""
    messages, stamps = closed_loop(8.0), ticks(8.0)
    horizon, rate = 8, round(1 / PERIOD)
    stands = int(stamps[0]) + round(1e9 * (7.5 - (horizon + 2) / rate))
    for place, (topic, stamp, _) in enumerate(messages):
        if topic == "simulation/truth/tip/pose" and stamp > stands:
            messages[place] = topic, stamp, pose_stamped(stamp, np.array([0.1, 0.0, 0.0]))
        if topic == "pressure/sent" and stamp > stands:
            messages[place] = topic, stamp, joint_state(stamp, [9e4] * 3)
    told = {"settings": {"duration": 7.5, "rate_hz": rate}, "start_stamp": int(stamps[0])}
    of_controller = {"horizon": horizon, "delay": 2}
    for node, values in (("reference", told), ("nempc_controller", of_controller)):
        messages.append(("/diagnostics", stamps[-1], diagnostics(stamps[-1], node, LOOP | values)))
    numbers = numbers_of(write_bag(tmp_path / "bag", messages))
    assert numbers["tip_error_max_mm"] == pytest.approx(3.0)
    assert numbers["tip_aed_settled_mm"] == pytest.approx(1.0)
    assert numbers["pressure"]["commanded_max_kpa"] == pytest.approx(50.0)
