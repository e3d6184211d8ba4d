"""Controllers as data: files, what a user gives, and how the two meet."""

import pytest
import yaml
from kit.refusals import one_line

from softcr_control.controller_file import (
    as_content,
    controller_settings,
    load_controller,
    named_settings,
)
from softcr_control.predictive.nempc import Nempc
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.settings import registry


def written(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


RUN_BY_THE_BLOCK = [
    name
    for name in registry.names("controller")
    if not issubclass(registry.resolve("controller", name), BlockBase)
]


@pytest.mark.parametrize("type_", RUN_BY_THE_BLOCK)
def test_the_shipped_file_of_that_name_holds_the_defaults(type_):
    assert named_settings(type_) == registry.resolve("controller", type_).Settings()


def test_the_papers_file_holds_the_papers_numbers():
    paper = named_settings("nempc", "nempc_licher2025")
    assert (paper.parents, paper.strangers) == (0.3897, 0.101)
    assert (paper.costs.state["force_z"], paper.costs.input_rate) == (14.6, 2.39)


def test_defaults_yield_to_the_model_that_yields_to_the_file_that_yields_to_the_user(tmp_path):
    advice = {"population": 32, "tip_offset_gain": 0.1, "perturbation": 1.0}
    text = "type: nempc\npopulation: 64\nhorizon: 12\ncosts: {input_rate: 0.25}\n"
    path = written(tmp_path, text)
    alone = named_settings("nempc", path, {}, advice)
    assert (alone.population, alone.horizon, alone.tip_offset_gain) == (64, 12, 0.1)
    assert (alone.costs.input_rate, alone.costs.tip_position) == (0.25, 1e4)
    given = {"horizon": 6, "costs": {"tip_position": 5.0}}
    asked = named_settings("nempc", path, given, advice)
    assert (asked.population, asked.horizon) == (64, 6)
    assert (asked.costs.input_rate, asked.costs.tip_position) == (0.25, 5.0)
    assert controller_settings(Nempc.Settings, None, {}, advice).population == 32
    path = written(tmp_path, "type: rod_mpc\ncosts: {tip_position: 2.0}\n")
    assert named_settings("rod_mpc", path).costs.input_rate == 0.05  # the controller's default


def test_knots_keep_their_places_under_another_horizon(tmp_path):
    knots = lambda given, file="": named_settings("rod_mpc", file, given).knots  # noqa: E731
    assert knots({"horizon": 56}) == (8, 56)
    assert knots({"horizon": 2}) == (1, 2)
    path = written(tmp_path, "type: rod_mpc\nhorizon: 16\n")
    assert knots({}, path) == (2, 16)
    assert knots({"horizon": 4, "knots": [1, 2, 4]}, path) == (1, 2, 4)


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("type: nempc\nsegments: 7", {"horizon": 4}, " with horizon = 4: segments 7 must be below"),
        ("type: nempc\nsegments: 7\nhorizon: 4", {}, ": segments 7 must be below horizon 4"),
        (
            "type: nempc\nhorizon: 4",
            {"segments": 7},
            " with segments = 7: segments 7 must be below",
        ),
        ("horizon: 8", {}, ": type: None is not allowed: must be nempc"),
        ("type: rod_mpc", {}, ": type: 'rod_mpc' is not allowed: must be nempc"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_source(tmp_path, text, given, message):
    path = written(tmp_path, text)
    with one_line() as caught:
        named_settings("nempc", path, given)
    assert str(caught.value).startswith(f"{path}{message}")


def test_settings_survive_their_file_and_terms_are_found_beside_it(tmp_path):
    text = "type: nempc\ncosts: {terms: [{class: 'term.py:Mine', weight: 2.0, height: 0.1}]}\n"
    (tmp_path / "term.py").write_text("")
    settings = named_settings("nempc", written(tmp_path, text))
    (term,) = settings.costs.terms
    assert (term.class_, term.weight) == (f"{tmp_path}/term.py:Mine", 2.0)
    again = written(tmp_path, yaml.safe_dump(as_content("nempc", "mine", settings)))
    assert named_settings("nempc", again) == settings
    assert load_controller(again).description == "mine"
