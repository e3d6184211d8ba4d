"""Checkpoints of trainings: what is saved comes back, and a file from outside is a line at most."""

import json
import os
import pickle
from functools import reduce
from operator import getitem

import numpy as np
import pytest
import torch
from kit.refusals import one_line
from safetensors.numpy import save_file

from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.learning.goals import BoxGoals
from softcr_papers.pawlowski2019.learning.judging import Judging
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.plant_settings import PlantSettings
from softcr_papers.pawlowski2019.learning.rounds import train_in_rounds
from softcr_papers.pawlowski2019.learning.run_directory import CHECKPOINT
from softcr_papers.pawlowski2019.learning.tasks import Reaching
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings
from softcr_papers.pawlowski2019.reference.workspace import Workspace
from softcr_studies.frame import checkpoints


class Order:
    """What a file must not make: an object that does something as it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return type(self.path).touch, (self.path,)


def resumed(path):
    found = []
    assert checkpoints.resume(path, found.append)
    return found[0]


def test_what_is_saved_comes_back_to_the_bit(tmp_path):
    random = np.random.default_rng(3)
    content = {
        "random": random.bit_generator.state,
        "optimiser": {0: {"step": torch.tensor(3.0), "mean": torch.rand(2, 3)}},
        "numbers": [1, 2.5, True, None, float("inf"), np.float32(0.1), "text"],
        "arrays": [np.arange(6).reshape(2, 3).T, np.zeros((0, 4), np.float32), np.array([True])],
    }
    checkpoints.save(tmp_path / "file", content)
    found = resumed(tmp_path / "file")
    assert found["random"] == content["random"]
    assert found["numbers"] == content["numbers"]
    assert torch.equal(found["optimiser"][0]["mean"], content["optimiser"][0]["mean"])
    assert found["optimiser"][0]["step"].shape == ()
    for ours, theirs in zip(found["arrays"], content["arrays"], strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    assert not checkpoints.resume(tmp_path / "none", content.update)


def tree(text):
    return lambda path, marker: save_file({"0": np.zeros(2)}, path, {"tree": text})


HOSTILE = {
    "pickle": lambda path, marker: path.write_bytes(pickle.dumps({"learner": Order(marker)})),
    "torch": lambda path, marker: torch.save({"learner": Order(marker)}, path),
    "pipe": lambda path, marker: os.mkfifo(path),
    "device": lambda path, marker: path.symlink_to("/dev/zero"),
    "folder": lambda path, marker: path.mkdir(),
    "empty": lambda path, marker: path.write_bytes(b""),
    "huge": lambda path, marker: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 1 << 40),
    "no tree": lambda path, marker: save_file({"0": np.zeros(2)}, path),
    "deep tree": tree("[" * 100_000),
    "nested tree": tree("[" * 900 + "]" * 900),
    "another name": tree('{"array": "1"}'),
    "an array for a name": tree('{"array": []}'),
    "no dictionary": tree('{"dict": [1]}'),
    "two kinds": tree('{"dict": [], "array": "0"}'),
    "an unhashable key": tree('{"dict": [[[], 1]]}'),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_from_outside_is_one_line_and_no_code(kind, tmp_path):
    marker = tmp_path / "marker"
    HOSTILE[kind](tmp_path / CHECKPOINT, marker)
    with one_line(r"checkpoint\.safetensors"):
        checkpoints.resume(tmp_path / CHECKPOINT, lambda content: content["learner"])
    assert not marker.exists()


def test_a_checkpoint_that_is_too_large_to_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "LARGEST_CHECKPOINT", 1000)
    with pytest.raises(UserError, match="allowed are 1000"):
        checkpoints.save(tmp_path / "file", {"buffer": np.zeros(1000)})
    assert not list(tmp_path.iterdir())


def replaced(content, place, value):
    """The content with another value at a place."""
    *way, last = place
    reduce(getitem, way, content)[last] = value
    return content


WRONG = [
    (("learner", "samples"), "many"),
    (("learner", "random", "state"), {"state": -1, "inc": "x"}),
    (("learner", "regression", "module", "0.weight"), torch.zeros(1, 1)),
    (("learner", "regression", "optimiser", "param_groups", 0, "lr"), "fast"),
    (("learner", "regression", "optimiser", "state", 0, "exp_avg"), torch.zeros(3)),
    (("learner", "regression", "optimiser", "state", 99), {"step": torch.zeros(())}),
    (("learner", "memory", 0, "weights"), np.zeros((2, 2), np.float32)),
    (("learner", "memory", 0, "more"), 1),
    (("progress", "best"), 7),
    (("progress", "history", 0, "judgement"), {"goals": 0}),
    (("progress", "history"), []),
    (("learner",), None),
]


def test_content_of_another_form_is_one_line(tmp_path):
    plant = Plant(load_robot("tendon_arm"), PlantSettings(intervals=3))
    task = Reaching(plant, BoxGoals(Workspace(0.1, 12.5, (-0.022, 0.018))), steps=4)
    few = {"environments": 2, "hidden": (4,), "directions": 4, "updates": 1, "batch": 4}
    settings = TrainingSettings.of("gps", samples=2600, **few)
    judging = Judging(plant, task, 0, 2)
    train_in_rounds(plant, task, settings, judging, tmp_path)
    file = tmp_path / CHECKPOINT
    honest = file.read_bytes()
    for place, value in WRONG:
        file.write_bytes(honest)
        checkpoints.save(file, replaced(resumed(file), place, value))
        with one_line("does not fit this training"):
            train_in_rounds(plant, task, settings, judging, tmp_path)
    header = json.loads(honest[8 : 8 + int.from_bytes(honest[:8], "little")])
    assert "tree" in header["__metadata__"]
