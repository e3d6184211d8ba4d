"""A bag without the machine it was made on: what nodes tell of themselves, and who reads it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kit.processes import Peer

from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_runtime.bags.message_bytes import cdr_of, decoded
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.recorded_files import RecordedFiles, recorded_configurations
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.bags.virtual_recording import VirtualRecording
from softcr_runtime.blocks.virtual import VirtualExecutor
from softcr_runtime.settings.plugin_settings import ModelSettings
from softcr_runtime.wire import configuration
from softcr_runtime.wire.configuration import Configuration, NamedFile, configurations, files_of
from softcr_runtime.wire.diagnostics import OK, DiagnosticReport, diagnostics_to_message
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

ROBOT = load_robot("licher2025")
OF_ROBOTS = config_directory() / "robots"


def over_the_wire(reports):
    payload = cdr_of(diagnostics_to_message(reports, 1))
    return decoded(payload, "diagnostic_msgs/msg/DiagnosticArray")


# --- what is told -------------------------------------------------------------------------------


def test_settings_name_their_files(tmp_path):
    robot, network = tmp_path / "mine.yaml", tmp_path / "trained"
    robot.write_text((OF_ROBOTS / "licher2025.yaml").read_text())
    weights, card = (network.with_suffix(ending) for ending in (".safetensors", ".json"))
    weights.write_text("...")
    card.write_text("...")
    code = tmp_path / "own.py"
    code.write_text("class Model: ...")
    given = {"robot": str(robot), "network": str(card), "model": f"{code}:Model"}
    found = list(files_of(ModelSettings.model_construct(**ModelSettings(**given).model_dump())))
    places = ("robot", robot), ("network", weights), ("network", card), ("model", code)
    assert sorted(found) == sorted((name, given[name], path) for name, path in places)
    shipped = OF_ROBOTS / "licher2025.yaml"
    assert list(files_of(ModelSettings())) == [("robot", "licher2025", shipped)]


def test_every_setting_of_a_shipped_node_that_names_a_file_of_config_says_so():
    from softcr_control.controller import ControllerBlock
    from softcr_hardware.nodes.force_torque import ForceTorque
    from softcr_hardware.nodes.optitrack import Optitrack
    from softcr_hardware.nodes.valves import Valves

    chosen = ControllerBlock.settings_of({"controller": "nempc", "controller_file": "nempc"})
    away = ControllerBlock.settings_of({"controller": "nempc", "costs.obstacles": "ball"})
    nodes = Valves.Settings(), Optitrack.Settings(), ForceTorque.Settings(), chosen, away
    told = [{name: path.parent.name for name, _, path in files_of(each)} for each in nodes]
    assert told == [
        {"robot": "robots", "station": "ethercat"},
        {"robot": "robots", "calibration": "optitrack"},
        {"robot": "robots", "mounting": "force_torque"},
        {"robot": "robots", "controller_file": "controllers"},
        {"robot": "robots", "costs.obstacles": "obstacles"},
    ]


@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_a_file_comes_back_byte_by_byte(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("files") / "a.bin"
    path.write_bytes(content)
    parameters = {"rate_hz": 70.0, "names": ["a", "b"], "mode": "wall"}
    files = [("file", "a.bin", path)]
    message = over_the_wire(configuration.reports("reference", "r", parameters, ROBOT, files))
    told = configurations([message])["reference"]
    assert told.files == (NamedFile("file", "a.bin", str(path), content),)
    assert told.parameters == parameters
    assert told.robot == ROBOT.model_dump(mode="json")


def test_what_is_too_large_or_not_readable_is_one_line(tmp_path, monkeypatch):
    path = tmp_path / "large"
    path.write_bytes(bytes(100))
    monkeypatch.setattr(configuration, "LARGEST", 99)
    with pytest.raises(UserError, match="has 100 bytes, allowed are 99"):
        configuration.reports("n", "r", {}, ROBOT, [("file", "large", path)])
    with pytest.raises(UserError, match="cannot be read: No such file"):
        configuration.reports("n", "r", {}, ROBOT, [("file", "gone", tmp_path / "gone")])


@pytest.mark.parametrize(
    ("name", "line", "values"),
    [
        ("n: file robot", "/x/..", {"setting": "robot", "given": "x", "text": "a"}),
        ("n: file robot", "", {"setting": "robot", "given": "x", "text": "a"}),
        ("n: file robot", "/x/a.yaml", {"setting": "robot", "given": "x", "base64": "%%%"}),
        ("n: file robot", "/x/a.yaml", {"setting": "robot", "given": "x"}),
        ("n: loop", "fine", {"text": "a"}),
        ("", "", {}),
    ],
)
def test_what_makes_no_sense_in_a_foreign_bag_is_passed_over(name, line, values):
    message = over_the_wire([DiagnosticReport(name, OK, line, "r", values)])
    assert not [each for told in configurations([message]).values() for each in told.files]


# --- files of a bag in the place of this machine's ------------------------------------------------


def of_estimator(*files):
    return RecordedFiles({"estimator": Configuration(files=tuple(NamedFile(*f) for f in files))})


def test_a_file_that_is_here_and_the_same_is_used_where_it_is():
    shipped = (OF_ROBOTS / "licher2025.yaml").read_bytes()
    elsewhere = "/opt/other/machine/config/robots/licher2025.yaml"
    files = of_estimator(("robot", "licher2025", elsewhere, shipped))
    assert files.instead("estimator", {"robot": "licher2025"}) == {}
    assert files.instead("estimator", {"robot": "another"}) == {}
    assert files.instead("controller", {"robot": "licher2025"}) == {}
    assert not files.notes


@pytest.mark.parametrize("given", ["licher2025", "/gone/mine.yaml", "mine.yaml"])
def test_a_file_that_differs_or_is_not_here_comes_from_the_bag(given):
    path = f"/gone/robots/{Path(given).stem}.yaml"
    files = of_estimator(("robot", given, path, b"the run's"))
    found = Path(files.instead("estimator", {"robot": given})["robot"])
    assert found.read_bytes() == b"the run's"
    assert found.name == Path(path).name
    (note,) = files.notes
    assert note == f"the estimator's robot is the run's, from the bag: {Path(path).name}"
    del files
    assert not found.exists()


def test_a_network_of_two_files_keeps_one_name_and_code_is_never_run_from_a_bag():
    endings = (".safetensors", ".json")
    named = [("network", "/gone/net", f"/gone/net{each}", each.encode()) for each in endings]
    files = of_estimator(*named, ("model", "/gone/own.py:Model", "/gone/own.py", b"import os"))
    values = {"network": "/gone/net", "model": "/gone/own.py:Model"}
    changed = files.instead("estimator", values)
    assert changed.keys() == {"network"}
    for ending in endings:
        assert Path(changed["network"] + ending).read_bytes() == ending.encode()


def test_a_robot_that_builds_on_a_file_stands_whole_in_the_bag(tmp_path):
    (tmp_path / "base.yaml").write_text("builds_on: licher2025\nname: base\ntip_mass: 0.05\n")
    own = tmp_path / "own.yaml"
    own.write_text("builds_on: ./base.yaml\nname: own\ngravity: 0.0\n")
    robot = load_robot(own)
    told = configuration.reports("estimator", "own", {}, robot, [("robot", str(own), own)])
    files = RecordedFiles(configurations([over_the_wire(told)]))
    (tmp_path / "base.yaml").unlink()
    found = files.instead("estimator", {"robot": str(own)})["robot"]
    assert load_robot(found) == robot


@pytest.mark.parametrize(
    "line", ["builds_on: /etc/secret.yaml", '"builds\\x5fon": ../secret.yaml', "builds_on: a/b"]
)
def test_a_file_of_a_bag_leads_to_no_file_of_this_machine(line):
    files = of_estimator(("robot", "mine.yaml", "/gone/mine.yaml", line.encode()))
    with pytest.raises(UserError, match="which the bag does not hold"):
        files.instead("estimator", {"robot": "mine.yaml"})


# --- whole runs ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The bag of a run of a robot whose file is gone, away from what stood beside it."""
    made, alone = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("alone")
    content = yaml.safe_load((OF_ROBOTS / "licher2025.yaml").read_text())
    robot = made / "longer.yaml"
    robot.write_text(yaml.safe_dump(content | {"name": "longer", "length": 0.131}))
    options = {"robot": str(robot), "mode": "lockstep", "duration": "1", "controller": "rod_mpc"}
    system = simulation_system(SimulationOptions.of_options(options), made / "bag")
    recording = VirtualRecording()
    executor = VirtualExecutor(system, recording.observe, recording.note)
    executor.run(0.5)
    recording.write(made / "bag", executor)
    shutil.move(made / "bag", alone / "bag")
    shutil.rmtree(made)
    return alone / "bag"


def softcr(*words, home):
    """The command in another directory, in a process that knows nothing of who made the bag."""
    code = "import sys; from softcr_tools import cli; sys.exit(cli.main(sys.argv[1:]))"
    # compiled kernels are kept below the home directory
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ROS")}
    environment |= {"ROS_HOME": str(home), "COLUMNS": "300"}
    path = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True, text=True, timeout=300, cwd=home, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_bag_alone_tells_its_robot_and_every_parameter(alone):
    told = recorded_configurations(Bag(alone))
    assert told.keys() == {"simulator", "estimator", "reference", "rod_mpc"}
    assert told["rod_mpc"].parameters["horizon"] > 0
    assert all(each.robot["length"] == 0.131 for each in told.values())
    assert read_signals(Bag(alone)).robot["name"] == "longer"


def test_a_bag_alone_is_replayed_to_the_bit_and_reported(alone, tmp_path):
    words = ("replay", str(alone), "--controller", "--output", str(tmp_path / "again"))
    said = softcr(*words, home=tmp_path)
    compared = json.loads((tmp_path / "again" / "comparison.json").read_text())
    for name in ("estimates", "commands"):
        counts = compared[name]
        assert counts["identical"] == counts["compared"] == counts["recorded"] > 30, said
    assert any("robot is the run's, from the bag" in note for note in compared["notes"])
    softcr("report", str(alone), "--output", str(tmp_path / "report"), home=tmp_path)
    assert json.loads((tmp_path / "report" / "summary.json").read_text())["robot"] == "longer"


# --- live nodes ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """The bag of a recorder that was activated after a relay was configured, and the relay."""
    rclpy = pytest.importorskip("rclpy")
    from relay import Relay

    from softcr_runtime.bags.recorder_node import RecorderNode

    directory, peer = tmp_path_factory.mktemp("live"), Peer()

    def made(kind, **parameters):
        given = [rclpy.Parameter(name, value=value) for name, value in parameters.items()]
        node = kind(context=peer.context, parameter_overrides=given)
        peer.executor.add_node(node)
        return node

    spin = peer.spin
    relay = made(Relay, factor=0.5)
    recorder = made(RecorderNode, bag=str(directory / "bag"))
    spin(1.5)  # both find each other, and the recorder the transitions
    recorder.trigger_configure()
    relay.trigger_configure()
    relay.get_logger().info("the story so far")
    spin(0.5)
    recorder.trigger_activate()
    relay.trigger_activate()
    spin(0.3)
    relay.set_parameters([rclpy.Parameter("factor", value=1.5)])
    spin(0.5)
    relay.trigger_deactivate()
    spin(0.5)
    recorder.trigger_deactivate()
    recorder.trigger_cleanup()
    for node in (relay, recorder):
        node.finish()
        node.destroy_node()
    peer.close()
    return Bag(directory / "bag")


def test_nodes_tell_what_they_were_configured_with_whenever_the_recorder_came(live):
    told = [m.decode() for m in live.messages(configuration.TOPIC)]
    of_relay = [c["relay"] for m in told if "relay" in (c := configurations([m]))]
    factors = [each.parameters["factor"] for each in of_relay]
    assert factors == [0.5, 1.5]  # as configured, and after a live parameter has changed
    assert of_relay[0].robot["name"] == ROBOT.name
    assert of_relay[0].parameters["names"] == ["a", "b"]
    (robot,) = of_relay[0].files
    assert robot.content == (OF_ROBOTS / "licher2025.yaml").read_bytes()
    assert "recorder" in recorded_configurations(live)


def test_the_log_parameter_events_and_transitions_are_in_the_bag(live):
    lines = [message.decode() for message in live.messages("/rosout")]
    assert ("relay", "the story so far") in [(line.name, line.msg) for line in lines]
    events = [message.decode() for message in live.messages("/parameter_events")]
    changed = [p for e in events if e.node == "/relay" for p in e.changed_parameters]
    assert [(p.name, p.value.double_value) for p in changed] == [("factor", 1.5)]
    states = [m.decode().goal_state.label for m in live.messages("/relay/transition_event")]
    way = ["configuring", "inactive", "activating", "active", "deactivating", "inactive"]
    assert states == way
    (first, *_) = [m.decode() for m in live.messages("/recorder/transition_event")]
    assert (first.start_state.label, first.goal_state.label) == ("unconfigured", "configuring")
