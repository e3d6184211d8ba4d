"""Bags from strangers: what they name is not run, read or written, unless a person says so."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from softcr_control.controller import ControllerBlock
from softcr_estimation.estimator import EstimatorBlock
from softcr_models import load_robot
from softcr_models.plugins import file_of_place
from softcr_runtime.bags.offline_bag import OfflineBag
from softcr_runtime.configuration import TOPIC as CONFIGURATION
from softcr_runtime.diagnostics import OK, DiagnosticReport, diagnostics_to_message
from softcr_runtime.frames import Pose
from softcr_runtime.messages import pose_to_message, pressures_to_message
from softcr_runtime.settings import setting_values
from softcr_tools import cli

ROBOT = load_robot("licher2025")
ESTIMATOR, CONTROLLER = (
    f"{each.__module__}:{each.__qualname__}" for each in (EstimatorBlock, ControllerBlock)
)
CODE = "from pathlib import Path\nPath({marker!r}).touch()\nclass Evil: pass\n"
_watched: dict[str, list[str]] = {}


def _hear(event: str, arguments: tuple) -> None:
    """Every file that Python opens, and every module that it imports."""
    if event in ("open", "import") and _watched:
        for word, heard in _watched.items():
            if word in str(arguments[0]):
                heard.append(f"{event} {arguments[0]}")


sys.addaudithook(_hear)


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A folder with code and data that a bag may name; the working directory."""
    folder = tmp_path / "evil_place"
    folder.mkdir()
    (folder / "evil.py").write_text(CODE.format(marker=str(folder / "marker")))
    for name in ("evil.yaml", "evil.json", "evil.safetensors", "net.safetensors", "net.json"):
        (folder / name).write_text("{}")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend("")
    _watched["evil"] = []
    yield folder
    _watched.clear()
    assert not (folder / "marker").exists()


def write(
    directory: Path, node="estimator", block=ESTIMATOR, files=(), settings=None, beside=None
) -> Path:
    """A bag with a few samples, and what a node of it says of itself."""
    bag, kind = OfflineBag(), EstimatorBlock if node == "estimator" else ControllerBlock
    start = 10**9
    for cycle in range(5):
        stamp = start + cycle * 14_285_714
        levels = pressures_to_message(np.zeros(3), ROBOT.chamber_names, stamp)
        bag.add("pressure/state", stamp, levels)
        bag.add("mocap/tip/pose", stamp, pose_to_message(Pose.of(np.eye(4)), stamp))
    names = {"estimator": {}, "controller": {"controller": "rod_mpc"}}
    told = setting_values(kind.settings_of(names[node])) | (settings or {})
    values = {"role": node, "block": block, "settings": told} if beside is None else {}
    reports = [DiagnosticReport(f"{node}: loop", OK, "", "r", values)]
    if node != "estimator":
        honest = setting_values(EstimatorBlock.settings_of({}))
        values = {"role": "estimator", "block": ESTIMATOR, "settings": honest}
        reports.append(DiagnosticReport("estimator: loop", OK, "", "r", values))
    bag.add_statuses(reports)
    if files:
        named = [
            DiagnosticReport(
                f"{node}: file {setting}", OK, path, "r",
                {"setting": setting, "given": given, "text": text},
            )
            for setting, given, path, text in files
        ]  # fmt: skip
        bag.add(CONFIGURATION, start, diagnostics_to_message(named, start))
    bag.write(directory / "bag")
    if beside is not None:
        parameters = {f"/{node}": {"ros__parameters": told | beside}}
        (directory / "parameters.yaml").write_text(json.dumps(parameters))
    return directory / "bag"


def refused(bag: Path, capsys, *options: str) -> str:
    """The one line with which a replay refuses a bag."""
    capsys.readouterr()
    assert cli.main(["replay", str(bag), *options]) == 2
    (line,) = [each for each in capsys.readouterr().err.splitlines() if each]
    assert line.startswith("softcr: error: ")
    return line


HERE = "{here}"  # the folder's absolute path
CASES = [
    ({"settings": {"estimator": f"{HERE}/evil.py:Evil"}}, "--set estimator="),
    ({"settings": {"estimator": "evil.py:Evil"}}, "--set estimator="),
    ({"settings": {"estimator": "../evil_place/evil.py:Evil"}}, "--set estimator="),
    ({"settings": {"estimator": "evil:Evil"}}, "--set estimator="),
    ({"settings": {"estimator": "antigravity:X"}}, "--set estimator="),
    ({"settings": {"estimator": 5}}, "must be text"),
    ({"settings": {"model": f"{HERE}/evil.py:Evil"}}, "--set model="),
    ({"block": f"{HERE}/evil.py:Evil"}, "--trust-bag"),
    ({"block": "antigravity:X"}, "--trust-bag"),
    ({"block": "softcr_tools.cli:X"}, "--trust-bag"),
    ({"settings": {"robot": f"{HERE}/evil.yaml"}}, "--robot FILE"),
    ({"settings": {"robot": "evil.yaml"}}, "--robot FILE"),
    ({"settings": {"robot": "/dev/zero"}}, "--robot FILE"),
    ({"settings": {"model": "ddpinn", "network": "evil"}}, "--set estimator.network=FILE"),
    ({"settings": {"model": "ddpinn", "network": f"{HERE}/evil"}}, "network=FILE"),
    ({"beside": {"estimator": f"{HERE}/evil.py:Evil"}}, "--set estimator="),
    ({"beside": {"robot": f"{HERE}/evil.yaml"}}, "--robot FILE"),
    (
        {
            "settings": {"estimator": "G"},
            "files": [
                ("estimator", "G", "/x/evil.py/", "class Evil: ..."),
                ("estimator", "G", "/x/evil.py:Evil.x", "1"),
            ],
        },
        "'G': unknown",
    ),
    (
        {
            "settings": {"estimator": "G"},
            "files": [
                ("estimator", "G", "/x/evil.py:Evil.json", "1"),
                ("estimator", "G", "/x/evil.py:Evil.csv", "1"),
            ],
        },
        "'G': unknown",
    ),
]
OF_CONTROLLER = [
    ({"settings": {"controller": f"{HERE}/evil.py:Evil"}}, "--set controller="),
    ({"settings": {"controller": "policy:evil"}}, "--set controller.policy=FILE"),
    ({"settings": {"controller": f"policy:{HERE}/evil"}}, "--set controller.policy=FILE"),
    ({"settings": {"model": "evil:Evil"}}, "--set model="),
    ({"settings": {"controller_file": f"{HERE}/evil.yaml"}}, "controller_file=FILE"),
    ({"settings": {"costs.obstacles": f"{HERE}/evil.yaml"}}, "costs.obstacles=FILE"),
]


def filled(case: dict, folder: Path) -> dict:
    return json.loads(json.dumps(case).replace(HERE, str(folder)))


@pytest.mark.parametrize(("case", "line"), CASES)
def test_what_a_bag_names_is_not_followed(evil, capsys, case, line):
    bag = write(evil, **filled(case, evil))
    _watched["evil"].clear()
    assert line in refused(bag, capsys)
    own = str(evil / "bag"), str(evil / "parameters.yaml")
    assert not [each for each in _watched["evil"] if not each.partition(" ")[2].startswith(own)]
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(("case", "line"), OF_CONTROLLER)
def test_nor_is_what_it_names_for_the_controller(evil, capsys, case, line):
    bag = write(evil, "controller", CONTROLLER, **filled(case, evil))
    _watched["evil"].clear()
    assert line in refused(bag, capsys, "--controller")
    own = str(evil / "bag"), str(evil / "parameters.yaml")
    assert not [each for each in _watched["evil"] if not each.partition(" ")[2].startswith(own)]


def test_a_trusted_bag_is_followed_and_told_with_digests_first(tmp_path, capsys):
    path = tmp_path / "own.py"
    path.write_text(CODE.format(marker=str(tmp_path / "marker")))
    bag = write(tmp_path, settings={"estimator": f"{path}:Evil"})
    assert cli.main(["replay", str(bag), "--trust-bag"]) == 2  # it has no update()
    told = capsys.readouterr()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"--trust-bag: runs {path}, SHA-256 {digest}" in told.out.replace("\n", "")
    assert "lacks" in told.err
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("place", ["own.py:Evil", "own:Evil", "gone.py:Evil", "json.gone:X"])
def test_even_a_trusted_bag_names_nothing_by_the_working_directory(
    tmp_path, capsys, monkeypatch, place
):
    (tmp_path / "own.py").write_text(CODE.format(marker=str(tmp_path / "marker")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    bag = write(tmp_path, settings={"estimator": place})
    assert "no file of Python's" in refused(bag, capsys, "--trust-bag")
    assert not (tmp_path / "marker").exists()


def test_what_a_person_names_is_run(tmp_path, capsys):
    path = tmp_path / "own.py"
    path.write_text(CODE.format(marker=str(tmp_path / "marker")))
    bag = write(tmp_path, settings={"estimator": "antigravity:X"})
    assert "lacks" in refused(bag, capsys, "--set", f"estimator={path}:Evil")
    assert (tmp_path / "marker").exists()


def test_the_file_of_a_place_is_found_without_importing_it():
    assert file_of_place("xml.sax.handler:X").name == "handler.py"
    assert file_of_place("antigravity:X").name == "antigravity.py"
    assert "antigravity" not in sys.modules
    assert file_of_place("sys:X") is None
