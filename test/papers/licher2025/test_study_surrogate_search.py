"""Studies of the surrogate's structure and of recipes of training, on small networks."""

import json

import optuna
import pytest
from kit.studies import run_of
from kit.surrogates import SMALL, quick_fits

from softcr_models.errors import UserError
from softcr_papers.licher2025.studies import surrogate_recipes, surrogate_steps, surrogate_structure
from softcr_papers.licher2025.studies.surrogate_recipes import RECIPES, settings_of
from softcr_papers.licher2025.training.training_settings import TrainingSettings
from softcr_studies.frame.catalogue import load_study
from softcr_studies.frame.search import Search, Tried
from softcr_studies.frame.table import read_table

FEW = SMALL.model_copy(update={"iterations": 30, "trajectories": 24, "noisy_samples": 500})


@pytest.fixture(autouse=True)
def quick(one_thread):
    with quick_fits():
        yield


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
