"""Models by name: those of the house, and any class from outside."""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from softcr_models.devices import DeviceName
from softcr_models.errors import UserError
from softcr_models.model import Model
from softcr_models.robot import Robot
from softcr_models.rod_model import RodModel

ModelName = Literal["rod", "ddpinn"]

MODELS: Mapping[str, str] = {
    "rod": "softcr_models.prediction:RodPrediction",
    "ddpinn": "softcr_models.surrogate.prediction:SurrogatePrediction",
    "constant_curvature": (
        "softcr_models.constant_curvature.section_model:ConstantCurvatureSection"
    ),
    "arm": "softcr_models.constant_curvature.arm_model:ArmModel",
}
"""Where each model's class is; none is imported before it is asked for. A class has
`of_robot(robot, settings) -> Model` and may have `Settings`, a pydantic model; without one,
`of_robot(robot)` is called."""


def make_model(name: str, robot: Any, settings: Mapping[str, Any] | None = None) -> Model:
    """The model of a name for a robot.

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
        return kind.of_robot(robot)
    return kind.of_robot(robot, _validated(name, options, settings or {}))


def model_class(name: str) -> Any:
    """The class of a name; see `make_model`.

    Raises:
        UserError: there is none, or it lacks what it needs.
    """
    place = MODELS.get(name, name)
    where, colon, attribute = place.rpartition(":")
    if not colon or not where or not attribute:
        raise UserError(
            f"model {name!r}: unknown; known are {', '.join(MODELS)}, or give "
            "package.module:Class or path/file.py:Class"
        )
    module = _of_file(name, Path(where)) if where.endswith(".py") else _of_package(name, where)
    kind = getattr(module, attribute, None)
    if not callable(getattr(kind, "of_robot", None)):
        reason = "there is no such class" if kind is None else "it has no of_robot(robot, settings)"
        raise UserError(f"model {name!r}: {reason}")
    return kind


@dataclass(frozen=True)
class ModelChoice:
    """What a node of a rod predicts with.

    Attributes:
        model: "rod", the exact one, or "ddpinn", the network trained for the robot.
        device: "cpu", "cuda", or "auto": a GPU if there is one.
        network: path of the network's files without ending; empty for the robot's shipped one.
        intervals: of the rod; a network has the number it was trained with.
        substeps: of the exact rod's integration per period.
        single_precision: whether the exact rod's rollouts are float32.
    """

    model: ModelName = "rod"
    device: DeviceName = "cpu"
    network: str = ""
    intervals: int = 5
    substeps: int = 2
    single_precision: bool = True


def prediction_model(robot: Robot, choice: ModelChoice) -> RodModel:
    """The rod-like model chosen, for a robot.

    Raises:
        UserError: no such network, a network for another robot or number of intervals, or a device
            that is not there.
    """
    fields = model_class(choice.model).Settings.model_fields
    chosen = make_model(choice.model, robot, {name: getattr(choice, name) for name in fields})
    assert isinstance(chosen, RodModel)
    return chosen


def _of_package(name: str, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == "torch":
            hint = "pip install 'softcr[surrogate]'"
            raise UserError(f"model: {name!r} needs PyTorch: {hint}") from None
        raise UserError(f"model {name!r}: no module named {error.name}") from None


def _of_file(name: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"model {name!r}: {path}: no such file")
    path = path.resolve()
    module_name = f"softcr_file_{hashlib.sha1(str(path).encode()).hexdigest()[:12]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"model {name!r}: {path} cannot be loaded: {problem}") from error
    return module


def _validated(name: str, options: type[BaseModel], settings: Mapping[str, Any]) -> BaseModel:
    try:
        return options.model_validate(dict(settings))
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = ", ".join(options.model_fields)
            raise UserError(f"model {name!r}: {field}: unknown; known are {known}") from None
        raise UserError(
            f"model {name!r}: {field}: {problem['input']!r} is not allowed: {problem['msg']}"
        ) from None
