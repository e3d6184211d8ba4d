"""A settings model and the ROS parameters that follow from it."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_models.errors import UserError
from softcr_runtime.settings.node_settings import (
    NodeSettings,
    build_settings,
    declared_settings,
    setting_values,
)


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


def test_a_model_in_a_model_has_dotted_names_and_open_bounds():
    declared = declared_settings(Settings)
    assert declared["weights.tip"].low == 0.0
    assert declared["weights.tip"].unit == "1/m^2"
    assert 0.0 < declared["weights.rate"].low < 1e-300
    assert 4.999999 < declared["weights.rate"].high < 5.0
    settings = build_settings(Settings, {"weights.tip": 3.0})
    assert settings.weights == Weights(tip=3.0)


def test_values_go_out_as_they_came_in():
    given = {"population": 64, "pressures": [1.0, 2.5], "weights.rate": 0.5, "mode": "lockstep"}
    settings = build_settings(Settings, given)
    values = setting_values(settings)
    assert {name: values[name] for name in given} == given
    assert set(values) == set(declared_settings(Settings))
    assert build_settings(Settings, values) == settings


def test_whole_numbers_are_numbers_but_not_the_other_way_round():
    assert build_settings(Settings, {"rate_hz": 50}).rate_hz == 50.0
    with pytest.raises(
        UserError, match=r"population = 9\.0: must be a whole number from 8 to 4096"
    ):
        build_settings(Settings, {"population": 9.0})


def test_a_rule_between_parameters_is_told():
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
