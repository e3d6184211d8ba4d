"""Options of a block and of the class it runs, side by side; wrong classes: test_plugins.py."""

from kit.refusals import one_line
from pydantic import BaseModel, Field, model_validator

from softcr_runtime.settings.node_settings import NodeSettings, build_settings, declared_settings
from softcr_runtime.settings.plugin_settings import plugin_settings, settings_class, with_plugin


class Weights(BaseModel):
    near: float = Field(1.0, ge=0.0, description="of the near")
    far: float = Field(2.0, ge=0.0, description="of the far")


class Mine:
    class Settings(BaseModel):
        horizon: int = Field(8, ge=1, le=20, description="ticks")
        weights: Weights = Weights()
        lengths: tuple[float, ...] = (1.0, 2.0)

        @model_validator(mode="after")
        def _far_is_heavier(self):
            if self.weights.far < self.weights.near:
                raise ValueError("weights: far must be at least near")
            return self


class Plain:
    pass


def test_both_are_options_of_one_model():
    model = with_plugin(NodeSettings, Mine)
    declared = declared_settings(model)
    assert declared.keys() == {
        *declared_settings(NodeSettings), "horizon", "weights.near", "weights.far", "lengths",
    }  # fmt: skip
    assert declared["horizon"].allowed == "a whole number from 1 to 20"
    settings = build_settings(model, {"horizon": 5, "seed": 3, "weights.far": 4.0})
    assert (settings.seed, settings.horizon) == (3, 5)
    own = plugin_settings(settings, Mine)
    assert own == Mine.Settings(horizon=5, weights=Weights(far=4.0))
    assert type(own) is Mine.Settings


def test_a_wrong_value_is_one_line_and_the_plugin_s_own_rules_hold():
    with one_line(says="far must be at least near"):
        build_settings(with_plugin(NodeSettings, Mine), {"weights.near": 3.0})


def test_a_class_without_settings_adds_none():
    assert declared_settings(with_plugin(NodeSettings, Plain)) == declared_settings(NodeSettings)
    assert plugin_settings(NodeSettings(), Plain) == settings_class(Plain)()
