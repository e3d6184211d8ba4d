"""A settings model, alone and beside that of a class that a block runs, and the ROS parameters that
follow from it; wrong classes: test_plugins.py."""

from typing import Annotated, Literal

import pytest
from kit.refusals import one_line
from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_models.errors import UserError
from softcr_runtime.settings.node_settings import (
    NodeSettings,
    build_settings,
    declared_settings,
    setting_values,
)
from softcr_runtime.settings.plugin_settings import plugin_settings, settings_class, with_plugin


class Weights(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    tip: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        1.0, description="weight of the tip", json_schema_extra={"unit": "1/m^2"}
    )
    rate: float = Field(0.1, gt=0.0, lt=5.0)


class Settings(NodeSettings):
    population: int = Field(1000, ge=8, le=4096, description="candidates")
    gain: float = Field(2.0, json_schema_extra={"live": True, "unit": "-"})
    kind: Literal["circle", "file"] = Field("circle")
    pressures: tuple[float, ...] = Field((1e3, 2e3), min_length=1, json_schema_extra={"unit": "Pa"})
    noisy: bool = False
    weights: Weights = Weights()

    @model_validator(mode="after")
    def _fits(self):
        if self.kind == "file" and self.noisy:
            raise ValueError("a file cannot be noisy")
        return self


def test_fields_become_settings_with_range_unit_and_words():
    declared = declared_settings(Settings)
    assert list(declared)[:4] == ["robot", "mode", "rate_hz", "seed"]
    population = declared["population"]
    assert (population.kind, population.default) == ("integer", 1000)
    assert (population.low, population.high) == (8, 4096)
    assert population.description == "candidates"
    assert declared["rate_hz"].allowed == "a number from 1.0 to 1000.0 Hz"
    assert declared["mode"].allowed == "one of wall, lockstep"
    assert declared["pressures"].is_list
    assert declared["pressures"].allowed == "a list of at least 1, each a number Pa"
    assert declared["noisy"].kind == "boolean"
    assert declared["gain"].live
    assert not population.live
    assert (declared["gain"].low, declared["gain"].unit) == (None, "")
    # a model in a model has dotted names and open bounds
    assert declared["weights.tip"].low == 0.0
    assert declared["weights.tip"].unit == "1/m^2"
    assert 0.0 < declared["weights.rate"].low < 1e-300
    assert 4.999999 < declared["weights.rate"].high < 5.0


def test_values_go_out_as_they_came_in():
    given = {"population": 64, "pressures": [1.0, 2.5], "weights.rate": 0.5, "mode": "lockstep"}
    settings = build_settings(Settings, given)
    assert settings.weights == Weights(rate=0.5)
    values = setting_values(settings)
    assert {name: values[name] for name in given} == given
    assert set(values) == set(declared_settings(Settings))
    assert build_settings(Settings, values) == settings


def test_whole_numbers_are_numbers_but_not_the_other_way_round_and_rules_are_told():
    assert build_settings(Settings, {"rate_hz": 50}).rate_hz == 50.0
    says = r"population = 9\.0: must be a whole number from 8 to 4096"
    with pytest.raises(UserError, match=says):
        build_settings(Settings, {"population": 9.0})
    with pytest.raises(UserError, match="a file cannot be noisy"):
        build_settings(Settings, {"kind": "file", "noisy": True})


def test_what_no_ros_parameter_can_hold_is_a_programming_error():
    class Optional(NodeSettings):
        maybe: float | None = None

    class Required(NodeSettings):
        must: float

    class Empty(NodeSettings):
        names: tuple[str, ...] = ()

    for model in (Optional, Required, Empty):
        with pytest.raises(TypeError, match="ROS parameter"):
            declared_settings(model)


class Mine:
    class Settings(BaseModel):
        horizon: int = Field(8, ge=1, le=20, description="ticks")
        weights: Weights = Weights()
        lengths: tuple[float, ...] = (1.0, 2.0)

        @model_validator(mode="after")
        def _tip_is_heavier(self):
            if self.weights.tip < self.weights.rate:
                raise ValueError("weights: tip must be at least rate")
            return self


class Plain:
    pass


def test_settings_of_a_block_and_of_the_class_that_it_runs_are_options_of_one_model():
    model, of_block = with_plugin(NodeSettings, Mine), declared_settings(NodeSettings)
    declared = declared_settings(model)
    assert declared.keys() - of_block == {"horizon", "weights.tip", "weights.rate", "lengths"}
    assert declared.keys() > of_block.keys()
    assert declared["horizon"].allowed == "a whole number from 1 to 20"
    settings = build_settings(model, {"horizon": 5, "seed": 3, "weights.tip": 4.0})
    assert (settings.seed, settings.horizon) == (3, 5)
    own = plugin_settings(settings, Mine)
    assert own == Mine.Settings(horizon=5, weights=Weights(tip=4.0))
    assert type(own) is Mine.Settings
    with one_line(says="tip must be at least rate"):
        build_settings(model, {"weights.rate": 3.0})
    # a class without settings adds none
    assert declared_settings(with_plugin(NodeSettings, Plain)) == of_block
    assert plugin_settings(NodeSettings(), Plain) == settings_class(Plain)()
