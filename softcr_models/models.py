"""Models by name: those of the house, and any class from outside."""

import importlib.util
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ValidationError

from softcr_models.errors import UserError, did_you_mean
from softcr_models.files.checked import checked
from softcr_models.model import Model
from softcr_models.plugins import load_class
from softcr_models.robots.robot import Robot

if TYPE_CHECKING:
    pass

ModelName = Literal["rod", "ddpinn"]

ENTRY_POINTS = "softcr.models"
"""Group of the entry points by which installed packages, the papers among them, add models."""

MODELS: dict[str, str] = {
    "rod": "softcr_models.prediction:RodPrediction",
    "ddpinn": "softcr_models.surrogate.prediction:SurrogatePrediction",
}
for _point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
    MODELS.setdefault(_point.name, _point.value)
"""Where each model's class is; none is imported before it is asked for. A class has
`of_robot(robot, settings) -> Model` and may have `Settings`, a pydantic model; without one,
`of_robot(robot)` is called."""


def make_model(name: str, robot: Any, settings: Mapping[str, Any] | None = None) -> Model:
    """The model of a name for a robot; of a rod with a `pressure_chain`, behind that chain.

    Args:
        name: one of `MODELS`, or `package.module:Class`, or `path/file.py:Class`.
        robot: as loaded from its file.
        settings: by name, of the class's `Settings`; what is left out has its default.

    Raises:
        UserError: no such model, a setting that is unknown or not allowed, or a robot of another
            kind than the model is for.
    """
    kind = model_class(name)
    options = getattr(kind, "Settings", None)
    if options is None:
        if settings:
            raise UserError(f"model {name!r}: has no settings, but {sorted(settings)} are given")
        return _behind_chain(kind.of_robot(robot), robot)
    return _behind_chain(kind.of_robot(robot, _validated(name, options, settings or {})), robot)


def _behind_chain(model: Model, robot: Any) -> Model:
    chain = robot.pressure_chain if isinstance(robot, Robot) else None
    if chain is None:
        return model
    from softcr_models.chain.chain_model import ChainModel
    from softcr_models.rod_model.rod_model import RodModel

    if not isinstance(model, RodModel):
        raise UserError(
            f"robot {robot.name}: pressure_chain: {type(model).__name__} is no model of its rod; "
            "allowed are rod and ddpinn"
        )
    return ChainModel(model, chain)


def model_class(name: str) -> Any:
    """The class of a name; see `make_model`.

    Raises:
        UserError: there is none, or it lacks what it needs.
    """
    if name not in MODELS and ":" not in name:
        raise UserError(
            f"model {name!r}: unknown; {did_you_mean(name, MODELS)}known are "
            f"{', '.join(MODELS)}, or give "
            "package.module:Class or path/file.py:Class"
        )
    try:
        kind = load_class(MODELS.get(name, name), "model")
    except UserError:
        if name == "ddpinn" and importlib.util.find_spec("torch") is None:
            hint = "pip install 'softcr[surrogate]'"
            raise UserError(f"model: {name!r} needs PyTorch: {hint}") from None
        raise
    if not callable(getattr(kind, "of_robot", None)):
        raise UserError(f"model {name!r}: has no of_robot(robot, settings)")
    return kind


def _validated(name: str, options: type[BaseModel], settings: Mapping[str, Any]) -> BaseModel:
    try:
        return checked(options, dict(settings))
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = ", ".join(options.model_fields)
            raise UserError(f"model {name!r}: {field}: unknown; known are {known}") from None
        raise UserError(
            f"model {name!r}: {field}: {problem['input']!r} is not allowed: {problem['msg']}"
        ) from None
