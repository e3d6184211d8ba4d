"""What people can choose of a run: options with unit and range, from the words of a command line.

`softcr up`, launch files and make offer every field by its name. The settings of a controller,
estimator, plant or reference that is named stand behind its role: `controller.population`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_models.errors import UserError
from softcr_models.robot import WORDS, Kind, kind_of, load_robot
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_runtime import registry
from softcr_runtime.plugin_settings import settings_class
from softcr_runtime.settings import Setting, build_settings, declared_settings
from softcr_runtime.system import Parameter, Parameters

ROLES: tuple[registry.Kind, ...] = ("controller", "estimator", "plant", "reference")
"""Options that name something of the registry, or a class in a file."""


def _or_a_place(role: registry.Kind) -> str:
    """The known names of a role, and how another one is named."""
    known = ", ".join(registry.choices(role))
    return f": {known}; or package.module:Class, or path/file.py:Class"


class RunOptions(BaseModel):
    """What can be chosen of every closed loop, with unit and range.

    Attributes:
        kinds: of robots that such a loop can be around.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ("rod",)

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    robot: str = Field("licher2025", description="a robot of config/robots, or a YAML file")
    duration: float = Field(
        30.0, ge=1.0, le=3600.0, description="length of the run", json_schema_extra={"unit": "s"}
    )
    seed: int = Field(1, ge=0, le=2**31 - 1, description="of sensor noise and optimiser")
    reference: str = Field(
        "trajectory",
        min_length=1,
        description="what it should do" + _or_a_place("reference"),
    )
    reference_file: str = Field("", description="CSV or NPZ with the reference 'file'")
    controller: str = Field(
        "nempc", min_length=1, description="who moves the robot" + _or_a_place("controller")
    )
    controller_file: str = Field(
        "",
        description="the controller's numbers: of config/controllers, or a YAML file; empty: "
        "its own",
    )
    model: Literal["rod", "ddpinn"] = Field(
        "rod", description="of the controller: the exact rod, or the network trained for it"
    )
    filter_model: Literal["rod", "ddpinn"] = Field(
        "rod", description="of the filter: the exact rod, or the network trained for it"
    )
    network: str = Field("", description="path of another network than the robot's own")
    population: int = Field(
        0,
        ge=0,
        le=100_000,
        description="candidates of the nempc; 0: its own number, on a network a smaller one",
    )
    horizon: int = Field(
        0,
        ge=0,
        le=200,
        description="control periods the controller looks ahead; 0: as its file says",
    )
    plugin_settings: dict[str, Any] = Field(
        {}, description="by role and name", json_schema_extra={"hidden": True}
    )

    @model_validator(mode="after")
    def _file_fits_reference(self) -> "RunOptions":
        if (self.reference == "file") != bool(self.reference_file):
            raise ValueError(
                f"reference = {self.reference!r} with reference_file = {self.reference_file!r}: "
                "a file goes with reference 'file', and only with it"
            )
        if self.reference_file and not Path(self.reference_file).is_file():
            raise ValueError(f"reference_file = {self.reference_file!r}: no such file")
        if 0 < self.population < 8:
            raise ValueError(
                f"population = {self.population}: must be a whole number from 8, or 0 for the "
                "controller's own"
            )
        if self.horizon == 1:
            raise ValueError("horizon = 1: must be at least 2, or 0 for the controller's own")
        if self.network and "ddpinn" not in (self.model, self.filter_model):
            raise ValueError(f"network = {self.network!r}: goes with model 'ddpinn'")
        return self


class PlantOptions(RunOptions):
    """A loop around a simulated plant, which is not what filter and controller know of it."""

    bending_compliance_factor: float = Field(
        0.95, ge=0.2, le=5.0, description="bending compliance of the plant over the robot file's"
    )
    tip_mass_factor: float = Field(
        1.1, ge=0.0, le=5.0, description="tip mass of the plant over the robot file's"
    )
    tip_noise_mm: float = Field(
        0.2,
        ge=0.0,
        le=50.0,
        description="standard deviation of measured positions",
        json_schema_extra={"unit": "mm"},
    )


class SimulationOptions(PlantOptions):
    """The closed loop in simulation.

    `softcr up simulation` and launch/simulation.launch.py offer every field by its name.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ("rod", "arm")

    tip_noise_mm: float = Field(
        -1.0,
        ge=-1.0,
        le=50.0,
        description="standard deviation of measured positions; below 0 for the robot file's",
        json_schema_extra={"unit": "mm"},
    )
    mode: Literal["wall", "lockstep"] = Field(
        "wall", description="paced by the wall clock, or each cycle waiting for the one before"
    )
    plant_intervals: int = Field(
        10, ge=2, le=MAX_INTERVALS, description="intervals of the simulated rod"
    )
    estimator: str = Field(
        "rod", min_length=1, description="who finds the state" + _or_a_place("estimator")
    )
    plant: str = Field(
        "", description="empty: the robot's own; or package.module:Class, or path/file.py:Class"
    )
    payload_kg: float = Field(
        0.0, ge=0.0, le=10.0, description="of an arm", json_schema_extra={"unit": "kg"}
    )
    adaptation: float = Field(
        0.0,
        ge=0.0,
        le=100.0,
        description="of an arm's section lengths, Gamma; over many setpoints they drift with it",
        json_schema_extra={"unit": "1/m"},
    )

    @model_validator(mode="after")
    def _open_loop_has_pressures(self) -> "SimulationOptions":
        if self.estimator == "cc":
            _refuse_others(self, _ROD_CLOSED_LOOP, "estimator cc, which runs in open loop")
            if self.reference in ("tip_circle", "file"):
                raise ValueError(
                    f"reference = {self.reference!r} with estimator 'cc': in open loop one that is "
                    "made of pressures: setpoint, circle, chirp_circle, trajectory"
                )
        return self


_ROD_CLOSED_LOOP = {
    "controller", "controller_file", "model", "filter_model", "network", "population",
}  # fmt: skip
_ROD_PLANT = {
    "plant_intervals", "bending_compliance_factor", "tip_mass_factor", "estimator", "horizon",
}  # fmt: skip
_MEANINGLESS: dict[Kind, set[str]] = {
    "rod": {"payload_kg", "adaptation"},
    "arm": _ROD_CLOSED_LOOP | _ROD_PLANT,
}
"""Options that say nothing to a robot of a kind."""

_ROD_REFERENCES = ("circle", "chirp_circle")
"""References made of pressures, which an arm has not."""


Options = TypeVar("Options", bound=RunOptions)


def options_of(kind: type[Options], texts: Mapping[str, str]) -> Options:
    """Options from texts by name; what is not named keeps its default.

    Raises:
        UserError: an option is unknown or out of range, or the robot cannot be loaded.
    """
    declared = declared_settings(kind)
    own = {name: text for name, text in texts.items() if name.partition(".")[0] not in ROLES}
    own |= {name: text for name, text in texts.items() if name in declared}
    values = {name: _parsed(declared.get(name), text) for name, text in own.items()}
    options = build_settings(kind, values)
    of_plugins = {name: text for name, text in texts.items() if name not in own}
    if of_plugins:
        options = options.model_copy(update={"plugin_settings": _of_plugins(options, of_plugins)})
    load_robot(options.robot, options.kinds)
    _check_fit(options, kind_of(options.robot))
    return options


def plugin_class(options: RunOptions, role: registry.Kind) -> Any:
    """The class that plays a role; None where the robot's own plant or a known reference does.

    Raises:
        UserError: it cannot be used.
    """
    named = getattr(options, role, "")
    if not named or (role == "reference" and ":" not in named):
        return None
    return registry.resolve(role, named)


def plugin_declared(options: RunOptions) -> dict[str, Setting]:
    """The settings of all that is named, by role and name (`controller.population`)."""
    found = {}
    for role in ROLES:
        plugin = plugin_class(options, role)
        if plugin is not None:
            for name, setting in declared_settings(settings_class(plugin)).items():
                found[f"{role}.{name}"] = setting
    return found


def _of_plugins(options: RunOptions, texts: Mapping[str, str]) -> dict[str, Parameters]:
    declared = plugin_declared(options)
    parsed: dict[str, Parameters] = {}
    for full, text in texts.items():
        if full not in declared:
            known = ", ".join(declared) or "none"
            raise UserError(f"option {full} = {text!r}: unknown; known are {known}")
        role, _, name = full.partition(".")
        parsed.setdefault(role, {})[name] = _parsed(declared[full], text)
    return parsed


def _check_fit(options: RunOptions, kind: Kind) -> None:
    """Raise UserError for an option that would be left without effect by the robot."""
    try:
        _refuse_others(options, _MEANINGLESS[kind], f"robot {options.robot!r}, {WORDS[kind]}")
    except ValueError as error:
        raise UserError(str(error)) from None
    if kind == "arm" and options.reference in _ROD_REFERENCES:
        raise UserError(
            f"reference = {options.reference!r} for robot {options.robot!r}: is made of pressures; "
            "an arm's is one of setpoint, trajectory, tip_circle, file"
        )


def _refuse_others(options: RunOptions, names: set[str], what: str) -> None:
    """Raise ValueError for the first of some options that is not left at its default."""
    for name, declared in type(options).model_fields.items():
        value = getattr(options, name)
        if name in names and value != declared.default:
            raise ValueError(f"{name} = {value!r}: has no meaning for {what}")


def simulation_options(texts: Mapping[str, str]) -> SimulationOptions:
    """Options of a simulation from texts by name, see `options_of`."""
    return options_of(SimulationOptions, texts)


def _parsed(setting: Setting | None, text: str) -> Parameter:
    """A text as the type of its setting; unchanged where it is none, for the check that follows."""
    convert = {"integer": int, "number": float}.get(setting.kind if setting else "", str)
    try:
        return convert(text)
    except ValueError:
        return text
