"""`softcr train`, `verify-surrogate` and the studies of training, on small networks."""

import json
import re

import optuna
import pytest
import torch
from kit.studies import run_of
from kit.surrogates import SMALL, quick_fits, small_network

from softcr_models.errors import UserError
from softcr_models.surrogate import files
from softcr_papers.licher2025 import train
from softcr_papers.licher2025.studies import surrogate_recipes, surrogate_steps, surrogate_structure
from softcr_papers.licher2025.studies import surrogate_verdict as verify
from softcr_papers.licher2025.studies.surrogate_recipes import RECIPES, settings_of
from softcr_papers.licher2025.training import time_to_musts
from softcr_papers.licher2025.training.training_settings import TrainingSettings
from softcr_studies.frame.catalogue import load_study
from softcr_studies.frame.search import Search, Tried
from softcr_studies.frame.table import read_table
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
        (["--learning-rate", "0"], "option learning_rate: 0.0 is not allowed: "),
        (["--terms", "4"], "with shared shapes it must be 3"),
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


# --- studies of the structure and of recipes of training ---


@pytest.mark.slow
def test_every_recipe_is_trained_and_judged(tmp_path, monkeypatch):
    few = {
        "ours": FEW,
        RECIPES[-1]: settings_of(RECIPES[-1], 1.0).model_copy(
            update={"iterations": 2, "trajectories": 16, "box_samples": 64, "physics_points": 4}
        ),
    }
    study = load_study("licher2025/surrogate-recipes")
    monkeypatch.setattr(surrogate_recipes, "TICKS", 30)
    monkeypatch.setattr(surrogate_recipes, "LONG", (3, 40))
    few_repeats = surrogate_steps.STEPS.model_copy(update={"repeats": 1})
    monkeypatch.setattr(surrogate_steps, "STEPS", few_repeats)
    monkeypatch.setattr(surrogate_recipes, "settings_of", lambda recipe, part: few[recipe])
    monkeypatch.setitem(study.__dict__, "methods", list(few))
    directory, _ = run_of(study.name, tmp_path, study.settings(motions=2))
    _, rows = read_table(directory / "table.json")
    assert {row.method for row in rows} == set(few)
    assert next(row.mean for row in rows if row.quantity == "bounded") == 100.0
    assert len([row for row in rows if row.quantity == "tip position"]) == 8


def test_a_search_stops_what_falls_behind_and_goes_on_later(tmp_path, monkeypatch):
    def tiny(trial, fixed):
        made = original(trial, fixed)
        architecture = made.architecture.model_copy(update={"neurons": 16, "layers": 1})
        return made.model_copy(update={"architecture": architecture})

    original = surrogate_structure.settings_of
    few = FEW.model_copy(update={"validate_every": 0.2})
    monkeypatch.setattr(surrogate_structure, "settings_of", tiny)
    monkeypatch.setattr(surrogate_structure, "fixed_settings", lambda settings: few)
    study, storage = load_study("licher2025/surrogate-structure"), f"sqlite:///{tmp_path}/trials.db"
    for wanted in (2, 3):  # the second run goes on where the first has ended
        settings = study.settings(trials=wanted, storage=storage)
        directory, _ = run_of(study.name, tmp_path, settings)
    kept = surrogate_structure.SEARCH.open(settings, tmp_path).get_trials()
    assert [each.user_attrs["turn"] for each in kept] == [0, 1, 2]
    states = {trial.state for trial in kept}
    assert states <= {optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED}
    assert {"neurons", "layers", "learning_rate", "shapes"} <= set(kept[0].params)
    assert kept[0].params == surrogate_structure.shipped_choice()
    _, rows = read_table(directory / "table.json")
    best = min(t.value for t in kept if t.state == optuna.trial.TrialState.COMPLETE)
    assert next(row.mean for row in rows if row.quantity == "tip error") == best
    assert sum(row.mean for row in rows if row.unit == "networks") == 3
    assert (directory / "search.png").stat().st_size > 1000
    assert len(json.loads((directory / "trials.json").read_text())["trials"]) == 3


def test_a_search_begins_with_what_is_shipped():
    trial = optuna.trial.FixedTrial(surrogate_structure.shipped_choice())
    assert surrogate_structure.settings_of(trial, TrainingSettings()) == TrainingSettings()


def test_a_stopped_network_is_ranked_by_its_last_validation(tmp_path):
    study = load_study("licher2025/surrogate-structure")
    cell = study.cells(study.settings())[3]

    def objective(trial):
        trial.report(5.0, 1)
        trial.report(trial.suggest_float("learning_rate", 2.0, 2.0), 2)
        raise optuna.TrialPruned

    cell = type(cell)(cell.case, cell.method, 0, cell.settings, folder=tmp_path)
    told = Search("made", __file__).take_turn(cell, {}, objective)
    assert told == {"cost": 2.0, "values": '{"learning_rate": 2.0}', "complete": False}
    with pytest.raises(UserError, match="no network was trained to the end"):
        surrogate_structure.structure_rows([Tried(0, 2.0, {}, complete=False)])


def test_unusable_storage_is_one_line(tmp_path):
    study = load_study("licher2025/surrogate-structure")
    settings = study.settings(storage="nosuchdatabase://here")
    with pytest.raises(UserError, match="storage 'nosuchdatabase://here': cannot be opened"):
        surrogate_structure.SEARCH.open(settings, tmp_path)
