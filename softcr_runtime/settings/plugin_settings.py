"""Options of a block that runs a plugin: the block's own and the plugin's, side by side."""

from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from softcr_models.devices import DeviceName
from softcr_models.errors import UserError
from softcr_models.models import make_model, model_class
from softcr_models.robots.robot import kind_of
from softcr_models.rod.section import MAX_INTERVALS
from softcr_runtime.settings.node_settings import NodeSettings, SampledNodeSettings


class ModelSettings(SampledNodeSettings):
    """Which model a block computes with; see `model_of`."""

    model: str = Field(
        "",
        description="model: a registered one, package.module:Class, or path/file.py:Class; empty: "
        "the exact one of the robot's kind",
    )
    network: str = Field(
        "",
        description="path of a network other than the robot's own",
        json_schema_extra={"endings": [".safetensors", ".json"]},
    )
    device: DeviceName = Field(
        "cpu",
        description="device on which the model computes; auto: a GPU that can be used, if any",
    )
    intervals: int = Field(
        5, ge=2, le=MAX_INTERVALS, description="number of intervals of the model's rod"
    )


class NoSettings(BaseModel):
    """Of a plugin that has none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def settings_class(plugin: type) -> type[BaseModel]:
    """The options of a plugin class, an empty model where it has none.

    Raises:
        UserError: its `Settings` is not a pydantic model.
    """
    found = getattr(plugin, "Settings", NoSettings)
    if found is BaseModel:
        raise UserError(
            f"{plugin.__name__}.Settings: is BaseModel itself, must be a class derived from it, "
            "whose fields are the settings"
        )
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise UserError(f"{plugin.__name__}.Settings: must be a pydantic model (BaseModel)")
    return found


def with_model(base: type[NodeSettings], name: str) -> type[NodeSettings]:
    """A settings model with the fields of a block and those of the model it names.

    Fields that both have are the block's, which then mean the model's.

    Raises:
        UserError: there is no such model.
    """
    own = settings_class(model_class(name))
    missing: dict[str, Any] = {
        n: (f.annotation, f) for n, f in own.model_fields.items() if _is_new(n, base)
    }
    return create_model(base.__name__, __base__=base, **missing) if missing else base


@cache
def with_default(plugin: type, name: str, value: Any) -> type:
    """A plugin class one of whose settings has another default."""
    own = settings_class(plugin)
    field = copy(own.model_fields[name])
    field.default = value
    settings = create_model(own.__name__, __base__=own, **{name: (field.annotation, field)})  # type: ignore[call-overload]
    said = {"Settings": settings, "__module__": plugin.__module__, "__doc__": plugin.__doc__}
    return type(plugin.__name__, (plugin,), said)


_OF_USERS = ("single_precision", "tip_force")  # of a model, chosen by whoever computes with it


def _is_new(name: str, base: type[NodeSettings]) -> bool:
    return name not in base.model_fields and name not in _OF_USERS


def model_of(robot: Any, settings: BaseModel, **chosen: Any) -> Any:
    """The model that a block's settings name, with its settings among them.

    Args:
        robot: of the block.
        settings: made by `with_model`.
        chosen: what the block decides itself; left out where the model has no such setting.

    Raises:
        UserError: it cannot be made.
    """
    name = model_name(settings)
    fields = settings_class(model_class(name)).model_fields
    values = {each: getattr(settings, each) for each in fields if hasattr(settings, each)}
    values |= {each: value for each, value in chosen.items() if each in fields}
    return make_model(name, robot, values)


def model_name(settings: Any) -> str:
    """What the settings name; without a name the exact model of the robot's kind."""
    return str(settings.model) or kind_of(settings.robot)


@cache
def with_plugin(base: type[NodeSettings], plugin: type) -> type[NodeSettings]:
    """A settings model with the fields of a block and those of its plugin.

    The plugin's own rules between its fields hold, too: they are validated together.

    Raises:
        UserError: both have a field of one name, or a field has no default.
    """
    own = settings_class(plugin)
    for name, field in own.model_fields.items():
        if name in base.model_fields:
            raise UserError(
                f"{plugin.__name__}.Settings.{name}: is the block's own option; choose another name"
            )
        if field.is_required():
            raise UserError(f"{plugin.__name__}.Settings.{name}: needs a default")
    fields: dict[str, Any] = {
        name: (field.annotation, field) for name, field in own.model_fields.items()
    }

    def validated_together(self: BaseModel) -> BaseModel:
        plugin_settings(self, plugin)
        return self

    together: Any = model_validator(mode="after")(validated_together)
    return create_model(
        f"{plugin.__name__}{base.__name__}",
        __base__=base,
        __validators__={"validated_together": together},
        **fields,
    )


def prepared_plugin(plugin: Any, before: BaseModel, after: BaseModel) -> Callable[[], None]:
    """What makes a plugin go on with other live settings, from its method `prepared(settings)`.

    Args:
        plugin: at work.
        before, after: its settings.

    Raises:
        UserError: it has no such method, or cannot use them now.
    """
    if before == after:
        return lambda: None
    prepare = getattr(plugin, "prepared", None)
    if prepare is None:
        raise UserError(
            f"{type(plugin).__name__}: its settings cannot change while it works: it has no method "
            "'prepared'"
        )
    made: Callable[[], None] = prepare(after)
    return made


def plugin_settings(settings: BaseModel, plugin: type) -> Any:
    """The plugin's part of settings made by `with_plugin`, as its own model."""
    own = settings_class(plugin)
    values: Mapping[str, Any] = {name: getattr(settings, name) for name in own.model_fields}
    return own.model_validate(
        {n: v.model_dump() if isinstance(v, BaseModel) else v for n, v in values.items()}
    )
