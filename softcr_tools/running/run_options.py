"""What people can choose of a run: options with unit and range, from the words of a command line.

`softcr up` and launch files offer every field by its name. The settings of a controller, estimator,
plant or reference that is named stand behind its role: `controller.population`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from softcr_models.devices import DeviceName
from softcr_models.errors import UserError, did_you_mean
from softcr_models.files.yaml_files import available
from softcr_models.models import MODELS
from softcr_models.plugins import Place
from softcr_models.robots.kinds import KINDS
from softcr_models.robots.robot import kind_of, load_robot
from softcr_models.rod.section import MAX_INTERVALS
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.ros.log_levels import LogLevel
from softcr_runtime.settings import registry
from softcr_runtime.settings.loops import loop_of
from softcr_runtime.settings.node_settings import (
    Kilograms,
    Millimetres,
    Seconds,
    Setting,
    build_settings,
    declared_settings,
    parsed,
)
from softcr_runtime.settings.parameter_files import ParameterFile
from softcr_runtime.wire.namespaces import FramePrefix, Namespace, absolute, frame_prefix
from softcr_simulation.errors.plant_errors import SAME_STRUCTURE
from softcr_tools.running.option_checks import (
    NOBODY,
    OF_CONTROLLER,
    OF_ERRORS,
    OF_OWN_PLANT,
    OF_SAME_STRUCTURE,
    ROD_CLOSED_LOOP,
    ROLES,
    check_budget,
    check_classes,
    check_devices,
    check_fit,
    check_surroundings,
    is_a_class,
    refuse_others,
    settings_of_plugins,
)
from softcr_tools.running.simulation_defaults import PLAIN, default_plant_errors, default_robot
from softcr_tools.running.virtual_options import MODE, VirtualTime

Options = TypeVar("Options", bound="RunOptions")
_Plant = TypeVar("_Plant", bound="PlantOptions")
_Simulation = TypeVar("_Simulation", bound="SimulationOptions")


def _absolute_file(place: str) -> str:
    """A file by its absolute path, so that nodes and replay elsewhere find it; a name as it is."""
    path = Path(place)
    return (
        str(path.resolve())
        if path.suffix in (".yaml", ".yml", ".json") and path.is_file()
        else place
    )


_A_PLACE = "or package.module:Class, or path/file.py:Class"


def _named(default: str, said: str, known: tuple[str, ...]) -> Any:
    """An option that is one of some names, or a place."""
    said = f"{said}: {', '.join(known)}; {_A_PLACE}"
    return Field(default, min_length=1, description=said, json_schema_extra=_known(known))


def _known(names: Iterable[str]) -> dict[str, Any]:
    """For a shell that completes an option."""
    return {"known": [name.partition(" ")[0] for name in names]}


class RunOptions(BaseModel):
    """What can be chosen of every closed loop, with unit and range.

    Attributes:
        kinds: of robots that such a loop can be around, by name; None: every kind.
    """

    kinds: ClassVar[tuple[str, ...] | None] = ("rod",)

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    robot: Annotated[str, AfterValidator(_absolute_file)] = Field(
        "licher2025",
        description="a robot of config/robots, or a YAML file",
        json_schema_extra=_known(available("robots")),
    )
    duration: Seconds = Field(30.0, ge=1.0, le=3600.0, description="length of the run")
    seed: int = Field(
        1, ge=0, le=2**31 - 1, description="seed of the sensor noise and of the optimiser"
    )
    reference: Place = _named("trajectory", "motion to follow", registry.choices("reference"))
    reference_file: str = Field("", description="CSV or NPZ file for the reference 'file'")
    learned: Annotated[str, AfterValidator(_absolute_file)] = Field(
        "",
        description="file of `softcr learn motion`: what earlier repetitions of the motion taught",
    )
    estimator: Place = _named("rod", "estimator of the state", registry.choices("estimator"))
    controller: Place = _named(
        "nempc",
        "controller of the robot",
        (*registry.choices("controller"), f"{NOBODY} (your node)"),
    )
    controller_file: str = Field(
        "",
        description="the controller's numbers: a file of config/controllers, or a YAML file; "
        "empty: the controller's own",
        json_schema_extra=_known(available("controllers")),
    )
    model: Place = _named("rod", "model of the controller", tuple(MODELS))
    filter_model: Place = _named("rod", "model of the filter", tuple(MODELS))
    network: str = Field("", description="path of a network other than the robot's own")
    device: DeviceName = Field(
        "cpu",
        description="where the controller's model computes: cuda is an NVIDIA GPU; auto is a GPU "
        "that can be used, otherwise the processor",
    )
    population: int = Field(
        0,
        ge=0,
        le=100_000,
        description="number of candidates of the nempc; 0: its own number, which is smaller with "
        "a network",
    )
    horizon: int = Field(
        0,
        ge=0,
        le=200,
        description="number of control periods that the controller looks ahead; 0: as its file "
        "says",
    )
    namespace: Namespace = Field(
        "", description="namespace of the robot's nodes, topics and results; empty: the root"
    )
    frame_prefix: FramePrefix = Field(
        "",
        description="prefix of the names of the robot's frames; by default the namespace and a "
        "slash; / for none",
    )
    visuals: Literal["auto", "on", "off"] = Field(
        "auto",
        description="whether frames, markers, centre line and estimated parameters are published "
        "for RViz, Foxglove and PlotJuggler; auto: on the wall clock. In lock-step their times "
        "differ from run to run",
    )
    log_level: LogLevel = Field(
        "info",
        description="lowest level that is logged and shown: debug, info, warn, error or "
        "fatal; NODE:=LEVEL for one node; several, separated by commas",
    )
    params_file: str = Field(
        "",
        description="ROS parameter file (YAML) with values for nodes; options take precedence",
    )
    switchable: str = Field(
        "",
        description="what `softcr call switch` may load into the run besides the registered "
        "controllers, separated by commas: classes (FILE.py:Class) and parameter files of your "
        "own. Anybody on the ROS domain may ask for a switch, so nothing else is loaded",
    )
    plugin_settings: dict[str, Any] = Field(
        {}, description="by role and name", json_schema_extra={"hidden": True}
    )

    @property
    def prefix(self) -> str:
        """What stands before the names of the robot's frames."""
        given = "frame_prefix" in self.model_fields_set
        return self.frame_prefix if given else frame_prefix(self.namespace)

    @property
    def of_every_node(self) -> Parameters:
        """What every node of the system is told; its namespace tells it the prefix of its frames,
        unless another one is given."""
        told: Parameters = {"robot": self.robot}
        if "frame_prefix" in self.model_fields_set:
            told["frame_prefix"] = self.frame_prefix
        return told

    @property
    def changed(self) -> set[str]:
        """Names of the options that are not left at the class's default."""
        return {
            name for name, declared in type(self).model_fields.items()
            if getattr(self, name) != declared.default
        }  # fmt: skip

    def completed(self: Options) -> Options:
        """A copy with the defaults that depend on other options, such as the name of the robot."""
        return self

    @classmethod
    def more_options(cls, given: Mapping[str, str]) -> dict[str, dict[str, Setting]]:
        """Settings of what plays the roles, where it is named or one of them is given.

        Raises:
            UserError: what is named cannot be used.
        """
        more, of_kind = {}, _told_by_kind(str(given.get("robot", "")), given)
        for role in [role for role in ROLES if role in cls.model_fields]:
            addressed = any(name.startswith(f"{role}.") for name in given)
            default = of_kind.get(role, cls.model_fields[role].default)
            if role == "plant" and not default:
                default = kind_of(given.get("robot", PLAIN))
            named = given.get(role, default if addressed else "")
            if is_a_class(role, named):
                settings = registry.declared(role, named)
                title = f"Settings of the {role} {named}"
                more[title] = {f"{role}.{name}": each for name, each in settings.items()}
        return more

    @classmethod
    def of_options(cls: type[Options], values: Mapping[str, Any]) -> Options:
        """Options from values or texts by name, those of what plays a role by `role.name`.

        Raises:
            UserError: one is unknown, not allowed, or without effect; a file cannot be loaded.
        """
        declared = declared_settings(cls)
        own = {
            name: _value(declared[name], value) if name in declared else value
            for name, value in values.items()
            if name in ROLES or name.partition(".")[0] not in ROLES
        }
        options = _with_file(cls, own).completed()
        load_robot(options.robot, options.kinds)
        options = _of_kind(options)
        check_classes(options)
        check_fit(options)
        check_surroundings(options)
        of_plugins = {name: value for name, value in values.items() if name not in own}
        if of_plugins:
            told = settings_of_plugins(options, of_plugins)
            check_budget(told, getattr(options, "mode", "wall"))
            options = options.model_copy(update={"plugin_settings": told})
        check_devices(options)
        return options

    @model_validator(mode="after")
    def _names_are_known(self) -> "RunOptions":
        known = dict.fromkeys(("model", "filter_model"), MODELS)
        for name, names in {**known, "reference": registry.choices("reference")}.items():
            value = getattr(self, name)
            if ":" not in value and value not in names:
                raise ValueError(
                    f"{name} = {value!r}: {did_you_mean(value, names)}must be one of "
                    f"{', '.join(names)}; {_A_PLACE}"
                )
        return self

    @model_validator(mode="after")
    def _numbers_and_files_fit(self) -> "RunOptions":
        if (self.reference == "file") != bool(self.reference_file):
            raise ValueError(
                f"reference = {self.reference!r} with reference_file = {self.reference_file!r}: "
                "a file goes with reference 'file', and only with it"
            )
        if self.reference_file and not Path(self.reference_file).is_file():
            raise ValueError(f"reference_file = {self.reference_file!r}: no such file")
        if self.learned and self.reference == registry.GOAL:
            raise ValueError(
                f"learned = {self.learned!r}: goes with a motion that repeats, not with reference "
                f"{registry.GOAL!r}"
            )
        if 0 < self.population < 8:
            raise ValueError(
                f"population = {self.population}: must be a whole number from 8, or 0 for the "
                "controller's own"
            )
        if self.horizon == 1:
            raise ValueError("horizon = 1: must be at least 2, or 0 for the controller's own")
        if self.controller == NOBODY:
            refuse_others(self, OF_CONTROLLER, f"controller {NOBODY!r}, a node of yours")
        if self.network and "ddpinn" not in (self.model, self.filter_model):
            raise ValueError(f"network = {self.network!r}: goes with model 'ddpinn'")
        return self


_FROM_FILE = (
    "robot", "frame_prefix", "mode", "duration", "controller", "estimator", "plant", "reference",
    "model",
)  # fmt: skip
"""Options that a section for all nodes of a parameter file may choose, by the parameter's name."""


def _with_file(cls: type[Options], given: Mapping[str, Any]) -> Options:
    """Options from values; those that decide what runs also from the file of parameters.

    Raises:
        UserError: one line about a value or the file.
    """
    options = build_settings(cls, given, "option")
    if not options.params_file:
        return options
    file = ParameterFile.load(options.params_file)
    said = {
        name: each
        for name, each in file.for_all(absolute(options.namespace)).items()
        if name in _FROM_FILE and name in cls.model_fields and name not in given
    }
    for name, each in said.items():
        try:
            build_settings(cls, {**given, name: each.value}, "parameter")
        except UserError as error:
            raise UserError(f"{file.where(each.section)}: {error}") from None
    values = {name: each.value for name, each in said.items()}
    if "model" in values and "filter_model" not in given:
        values["filter_model"] = values["model"]
    return build_settings(cls, {**given, **values}, "option")


def _told_by_kind(robot: str, given: Mapping[str, Any]) -> dict[str, str]:
    """What the kind of a robot has in the place of options that nobody gave; nothing of a robot
    that is none, about which checks will say more."""
    try:
        return loop_of(kind_of(robot)).defaults(given) if robot else {}
    except UserError:
        return {}


def _of_kind(options: Options) -> Options:
    """With what the kind of robot has in the place of options that nobody gave."""
    given = {name: getattr(options, name) for name in options.model_fields_set}
    defaults = loop_of(kind_of(options.robot)).defaults(given)
    own = {name: value for name, value in defaults.items() if name not in given}
    return options.model_copy(update=own) if own else options


class PlantOptions(RunOptions):
    """A loop around a simulated plant, which is not what filter and controller know of it."""

    bending_compliance_factor: float = Field(
        0.95,
        ge=0.2,
        le=5.0,
        description="bending compliance of the plant, relative to the robot file",
    )
    tip_mass_factor: float = Field(
        1.1, ge=0.0, le=5.0, description="tip mass of the plant, relative to the robot file"
    )
    tip_noise_mm: Millimetres = Field(
        0.2, ge=0.0, le=50.0, description="standard deviation of measured positions"
    )
    mode: str = "wall"
    virtual: VirtualTime = Field(VirtualTime(), json_schema_extra={"hidden": True})

    @property
    def is_virtual(self) -> bool:
        """Whether time is virtual, and the run one process without nodes."""
        return self.mode == MODE

    @classmethod
    def more_options(cls, given: Mapping[str, str]) -> dict[str, dict[str, Setting]]:
        """See RunOptions; and what can be late and lost on virtual time."""
        title = f"On virtual time (--mode {MODE})"
        return super().more_options(given) | {title: declared_settings(VirtualTime)}

    @classmethod
    def of_options(cls: type[_Plant], values: Mapping[str, Any]) -> _Plant:
        """See RunOptions; `virtual` is made of what is said of virtual time."""
        declared = declared_settings(VirtualTime)
        given = {
            name: _value(declared[name], value)
            for name, value in values.items()
            if name in declared
        }
        others = {name: value for name, value in values.items() if name not in given}
        options = super().of_options(others)
        if not options.is_virtual:
            for name in given:
                raise UserError(
                    f"option {name}: has no meaning in mode {options.mode!r}; goes with "
                    f"--mode {MODE}"
                )
            return options
        virtual = build_settings(VirtualTime, given, "option")
        return options.model_copy(update={"virtual": virtual})

    @model_validator(mode="after")
    def _all_is_in_one_process(self) -> "PlantOptions":
        if self.is_virtual:
            what = f"mode {MODE!r}, which has no nodes"
            refuse_others(self, {"log_level"}, what)
            for name, value in (
                ("controller", NOBODY),
                ("reference", registry.GOAL),
                ("visuals", "on"),
            ):
                if getattr(self, name) == value:
                    raise ValueError(f"{name} = {value!r}: has no meaning for {what}")
        return self


class SimulationOptions(PlantOptions):
    """The closed loop in simulation."""

    kinds: ClassVar[tuple[str, ...] | None] = None

    robot: Annotated[str, AfterValidator(_absolute_file)] = Field(
        "",
        description="a robot of config/robots, or a YAML file; empty: licher2025_chain, whose "
        "filter estimates hysteresis, hoses and lengths, if nempc or rod_mpc controls the exact "
        "rod, otherwise licher2025",
        json_schema_extra=_known(available("robots")),
    )
    tip_noise_mm: Millimetres = Field(
        -1.0,
        ge=-1.0,
        le=50.0,
        description="standard deviation of measured positions; below 0: that of the robot file",
    )
    mode: Literal["wall", "lockstep", "virtual"] = Field(
        "wall",
        description="wall: paced by the wall clock; lockstep: each cycle waits for the one "
        "before; virtual: as on the wall clock of a machine of the given speed, without nodes and "
        "as fast as it computes",
    )
    plant_intervals: int = Field(
        0,
        ge=0,
        le=MAX_INTERVALS,
        description="number of intervals of the simulated rod; 0: 10, or 20 with plant errors "
        "other than same_structure",
    )
    plant: Place = Field(
        "",
        description=f"simulated plant; empty: the robot's own; {_A_PLACE}",
        json_schema_extra=_known(registry.choices("plant")),
    )
    plant_errors: Annotated[str, AfterValidator(_absolute_file)] = Field(
        "",
        description="how body, pressures and sensors of the simulated rod differ from the model: "
        "a file of config/plant_errors, or a YAML file; empty: typical for one segment with "
        "chambers, same_structure for other robots and if one of its numbers is given (factors, "
        "tip noise, payload, loads, obstacles)",
        json_schema_extra=_known(available("plant_errors")),
    )
    payload_kg: Kilograms = Field(
        0.0,
        ge=0.0,
        le=10.0,
        description="mass at the tip of the simulated robot that the controller does not know "
        "about",
    )
    loads: Annotated[str, AfterValidator(_absolute_file)] = Field(
        "",
        description="forces and moments on the simulated rod over time: a file of config/loads, "
        "or a YAML file",
        json_schema_extra=_known(available("loads")),
    )
    obstacles: Annotated[str, AfterValidator(_absolute_file)] = Field(
        "",
        description="planes and spheres that the simulated rod may touch: a file of "
        "config/obstacles, or a YAML file",
        json_schema_extra=_known(available("obstacles")),
    )
    model_file: Annotated[str, AfterValidator(_absolute_file)] = Field(
        "",
        description="robot file with the numbers of the model of filter and controller, for "
        "example a learned one, for kinds of robots whose model takes one; empty: the robot's own",
    )

    @model_validator(mode="after")
    def _own_plant_has_its_own_numbers(self) -> "SimulationOptions":
        if self.plant not in ("", *KINDS):
            refuse_others(
                self, {*OF_OWN_PLANT, *OF_ERRORS}, f"plant {self.plant!r}; see --plant.NAME"
            )
        if self.plant_errors not in ("", SAME_STRUCTURE):
            where = f"plant_errors {self.plant_errors!r}, whose file says all"
            refuse_others(self, OF_SAME_STRUCTURE, where)
        return self

    @property
    def node_mode(self) -> str:
        """Of every node or block: on virtual time they are those of the wall clock."""
        return "wall" if self.is_virtual else self.mode

    def completed(self: _Simulation) -> _Simulation:
        """See RunOptions; raises UserError for a robot that cannot be used."""
        found = self
        if not found.robot:
            found = found.model_copy(update={"robot": default_robot(found)})
        if not found.plant_errors:
            load_robot(found.robot, found.kinds)
            errors = default_plant_errors(found)
            found = found.model_copy(update={"plant_errors": errors})
        return found

    @model_validator(mode="after")
    def _open_loop_has_pressures(self) -> "SimulationOptions":
        if self.estimator == "cc":
            refuse_others(self, ROD_CLOSED_LOOP, "estimator cc, which runs in open loop")
            of_tips = ("tip_circle", "file", registry.GOAL)
            if self.reference in of_tips or ":" in self.reference:
                raise ValueError(
                    f"reference = {self.reference!r} with estimator 'cc': in open loop one that is "
                    "made of pressures: setpoint, circle, chirp_circle, trajectory"
                )
        return self


def _value(setting: Setting, value: Any) -> Any:
    return parsed(setting, value, f"option {setting.name}") if isinstance(value, str) else value
