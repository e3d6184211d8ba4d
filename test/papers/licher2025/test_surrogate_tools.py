"""`softcr train` and `verify-surrogate` on the small network."""

import json
import re

import pytest
import torch
from kit.surrogates import SMALL, quick_fits, small_network

from softcr_models.surrogate import files
from softcr_papers.licher2025 import train
from softcr_papers.licher2025.studies import surrogate_steps
from softcr_papers.licher2025.studies import surrogate_verdict as verify
from softcr_papers.licher2025.training import time_to_musts
from softcr_tools.cli import main as softcr

FEW = SMALL.model_copy(update={"iterations": 30, "trajectories": 24, "noisy_samples": 500})


@pytest.fixture(autouse=True)
def quick(one_thread):
    with quick_fits():
        yield


def test_train_writes_weights_card_and_log(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(train.PRESETS, "softcr", lambda: FEW)
    output = tmp_path / "made"
    assert softcr(["train", "--output", str(output), "--neurons", "16", "--seed", "3"]) == 0
    network, card = files.load(output)
    assert network.architecture.neurons == 16
    assert card.training["seed"] == 3
    assert card.hardware["torch"] == torch.__version__
    log = (tmp_path / "made.csv").read_text().splitlines()
    assert log[0].startswith("iteration,seconds,learning_rate,loss one step")
    assert not (tmp_path / "made.checkpoint").exists()
    assert "mm mean over 4 s of free running" in capsys.readouterr().out

    again = ["train", "--output", str(tmp_path / "next"), "--neurons", "16"]
    assert softcr([*again, "--start", str(output)]) == 0
    assert files.load(tmp_path / "next")[1].start == card
    other = ["train", "--output", str(tmp_path / "x"), "--neurons", "24", "--start", str(output)]
    assert softcr(other) == 2
    assert "has other architecture" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--neurons", "2"], "option neurons: 2 is not allowed: .* greater than or equal to 4"),
        (["--neurons", "x"], "option neurons = 'x': must be a whole number from 4 to 4096"),
        (["--learning-rate", "0"], "option learning_rate: 0.0 is not allowed: "),
        (["--terms", "4"], "with shared shapes it must be 3"),
        (["--robot", "nobody"], "robot 'nobody': unknown"),
    ],
)
def test_wrong_options_are_one_line(options, match, capsys):
    assert softcr(["train", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(match, line)


@pytest.fixture
def _few_repeats(monkeypatch):
    few = surrogate_steps.STEPS.model_copy(update={"repeats": 1})
    monkeypatch.setattr(surrogate_steps, "STEPS", few)
    monkeypatch.setattr(surrogate_steps, "TICKS", few)
    tick = surrogate_steps.TICK.model_copy(update={"population": 40})
    monkeypatch.setattr(surrogate_steps, "TICK", tick)


@pytest.mark.usefixtures("_few_repeats")
def test_times_alone_name_every_way_and_tick(capsys):
    assert softcr(["verify-surrogate", "--only-times", "--network", str(small_network()[2])]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for way in ("exact rod, float32, batch 147", "network, folded, batch 1000"):
        assert f"{way}: median" in said
    for way in ("exact rod", "network, arrays"):
        assert f"NEMPC tick x 7: {way}, batch 40: median" in said


@pytest.mark.usefixtures("_few_repeats")
def test_verify_writes_table_figures_and_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(verify.study, "HORIZONS", [1, 8])
    monkeypatch.setattr(verify, "COMPLIANCES", verify.COMPLIANCES[::4])
    monkeypatch.setattr(verify, "PRESSURE_PARTS", verify.PRESSURE_PARTS[::4])
    monkeypatch.setattr(verify, "STABILITY", {"lagged_steps": 8})
    monkeypatch.setattr(verify, "LONG", (4, 200))
    monkeypatch.setattr(verify.study, "TICKS", 60)
    _, _, path = small_network()
    arguments = ["--network", str(path), "--motions", "2", "--results", str(tmp_path)]
    assert softcr(["verify-surrogate", *arguments]) == 0
    latest = tmp_path / "latest"
    for name in ("states.png", "horizons.png", "map.png"):
        assert (latest / name).stat().st_size > 1000
    rows = json.loads((latest / "table.json").read_text())["rows"]
    assert {row["case"] for row in rows} >= {"smooth 70 %", "one step, noisy state", "batch 147"}
    found = json.loads((latest / "verification.json").read_text())
    assert found["bounded"]["lagged_steps, 1000 steps"][:2] == [8, 8]
    assert found["spectral radius of the linear part"] < 1.0


def test_how_long_a_training_takes_until_its_network_is_good_enough(monkeypatch):
    """With musts that any network meets, and with those of the shipped one."""
    few = FEW.model_dump(include={"architecture", "trajectories", "ticks", "noisy_samples"})
    few |= {"iterations": 20, "threads": 1, "validate_every": 0.5, "batch": 64, "loop_batch": 16}
    monkeypatch.setattr(time_to_musts, "COUNT", 1)
    monkeypatch.setattr(time_to_musts, "TICKS", 20)
    lines = []
    found = time_to_musts.time_to_musts("cpu", 60.0, tell=lines.append, **few)
    assert found.iterations == 20
    assert found.rate == pytest.approx(20 / found.training)
    assert found.all_reached is None
    assert found.figures["lagged steps 100 %: tip position [mm]"] > 0.9
    assert [line for line in lines if "of 6 are good enough" in line]
    monkeypatch.setattr(time_to_musts, "MUSTS", dict.fromkeys(time_to_musts.MUSTS, 1e6))
    found = time_to_musts.time_to_musts("cpu", 60.0, **few)
    assert len(found.reached) == 6
    assert 0.0 < found.all_reached <= found.training
    assert time_to_musts.time_to_musts("cpu", 0.0, **few).iterations < 20
