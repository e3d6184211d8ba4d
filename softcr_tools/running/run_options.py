"""What people can choose of a run, from the words of a command line and from a file.

`softcr up` and launch files offer every field by its name. Behind the name of a role stand the
settings of whoever plays it: `controller.population`. A file of options is the same tree.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from softcr_models.devices import DeviceName
from softcr_models.errors import UserError
from softcr_models.files.yaml_files import available, read_mapping
from softcr_models.plugins import Place
from softcr_models.robots.robot import kind_of, load_robot
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.ros.log_levels import LogLevel
from softcr_runtime.settings import registry
from softcr_runtime.settings.loops import loop_of
from softcr_runtime.settings.node_settings import (
    Seconds,
    Setting,
    build_settings,
    declared_settings,
    parsed,
)
from softcr_runtime.wire.namespaces import FramePrefix, Namespace, frame_prefix
from softcr_tools.running.option_checks import check, check_mode, refuse_others
from softcr_tools.running.roles import (
    NOBODY,
    ROLES,
    absolute_file,
    checked,
    flat,
    settings_of,
)
from softcr_tools.running.simulation_defaults import default_plant_errors, default_robot
from softcr_tools.running.virtual_options import MODE, VirtualTime

Options = TypeVar("Options", bound="RunOptions")

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
        nodes: name -> place of the settings of what is told by `name.setting` beside the roles.
    """

    kinds: ClassVar[tuple[str, ...] | None] = ("rod",)
    nodes: ClassVar[Mapping[str, str]] = {
        "recorder": "softcr_runtime.bags.recorder_node:RecorderSettings",
        "visuals": "softcr_tools.nodes.visuals:VisualsSettings",
    }

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    robot: Annotated[str, AfterValidator(absolute_file)] = Field(
        "licher2025",
        description="a robot of config/robots, or a YAML file",
        json_schema_extra=_known(available("robots")),
    )
    duration: Seconds = Field(30.0, ge=1.0, le=3600.0, description="length of the run")
    seed: int = Field(
        1, ge=0, le=2**31 - 1, description="seed of the sensor noise and of the optimiser"
    )
    reference: Place = _named("trajectory", "motion to follow", registry.choices("reference"))
    estimator: Place = _named("rod", "estimator of the state", registry.choices("estimator"))
    controller: Place = _named(
        "nempc",
        "controller of the robot",
        (*registry.choices("controller"), f"{NOBODY} (your node)"),
    )
    device: DeviceName = Field(
        "cpu",
        description="where the controller's model computes: cuda is an NVIDIA GPU; auto is a GPU "
        "that can be used, otherwise the processor",
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
        description="file of options (YAML), those of roles below the role's name; options of the "
        "command line take precedence",
    )
    switchable: str = Field(
        "",
        description="what `softcr call switch` may load into the run besides the registered "
        "controllers, separated by commas: classes (FILE.py:Class) and parameter files of your "
        "own. Anybody on the ROS domain may ask for a switch, so nothing else is loaded",
    )
    roles: dict[str, dict[str, Any]] = Field(
        {}, description="what was given, by role and name", json_schema_extra={"hidden": True}
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

    def named(self, role: str) -> str:
        """What plays a role by its name; the robot's own plant where none is named."""
        named = str(getattr(self, role, ""))
        return kind_of(self.robot) if role == "plant" and not named else named

    def of(self, role: str) -> Parameters:
        """Settings of whoever plays a role, by name: those that were given, and those that the
        system says of itself."""
        return dict(self.roles.get(role, {}))

    def model_of(self, role: str) -> str:
        """The model that filter or controller computes with."""
        return str(self.of(role).get("model", "")) or kind_of(self.robot)

    def told(self: Options, role: str, values: Parameters) -> Options:
        """A copy in which a role is told more."""
        roles = {**self.roles, role: self.roles.get(role, {}) | values}
        return self.model_copy(update={"roles": roles})

    def completed(self: Options) -> Options:
        """A copy with the defaults that depend on other options, such as the name of the robot."""
        return self

    @classmethod
    def more_options(cls, given: Mapping[str, Any]) -> dict[str, dict[str, Setting]]:
        """Settings of whoever plays the roles, by `role.name`.

        Raises:
            UserError: what is named cannot be used.
        """
        declared = declared_settings(cls)
        values = {n: v for n, v in given.items() if n in declared or "." in n}
        options = cls._chosen(cls._with_file(values)[0])
        usual, more = options.model_copy(update={"roles": {}}), {}
        for role in (*(each for each in ROLES if each in declared), *cls.nodes):
            title = f"{role} {options.named(role) if role in ROLES else ''}".strip()
            more[f"Settings of the {title}"] = {
                f"{role}.{name}": replace(each, default=usual.of(role).get(name, each.default))
                for name, each in settings_of(options, role).items()
            }
        return {**more, f"On virtual time (--mode {MODE})": cls._late()}

    @classmethod
    def of_options(cls: type[Options], values: Mapping[str, Any]) -> Options:
        """Options from values or texts by name, those of what plays a role by `role.name`.

        Raises:
            UserError: one is unknown, not allowed, or without effect; a file cannot be loaded.
        """
        merged, of_file = cls._with_file(values)
        try:
            options = cls._chosen(merged)
            told = {role: checked(options, role) for role in options.roles}
            options = options.model_copy(update={"roles": told})
            check(options)
        except UserError as error:
            name = re.match(r"(?:options? )?([\w.]+)", str(error))
            from_file = f"{merged['params_file']}: " if name and name[1] in of_file else ""
            raise UserError(f"{from_file}{error}") from None
        return options

    @classmethod
    def _with_file(cls, given: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
        """Values above those of the file that they name, and the names that the file alone has."""
        path = given.get("params_file", "")
        told: dict[str, Any] = {}
        for name, value in (flat(read_mapping(Path(path), "parameter")) if path else {}).items():
            role, _, setting = name.partition(".")  # below one word stand its name and settings
            told[role if setting == role else name] = value
        return told | dict(given), told.keys() - given.keys()

    @classmethod
    def _chosen(cls: type[Options], values: Mapping[str, Any]) -> Options:
        """Options whose roles hold what was given as it is."""
        if robot := values.get("robot", ""):
            values = loop_of(kind_of(robot)).defaults(values) | dict(values)
        late = cls._late()
        declared = declared_settings(cls) | late
        own, virtual, roles = dict[str, Any](), dict[str, Any](), dict[str, Any]()
        for name, value in values.items():
            role, dot, setting = name.partition(".")
            if isinstance(value, str) and name in declared:
                value = parsed(declared[name], value, f"option {name}")
            if name in late:
                virtual[name] = value
            elif dot and (role in ROLES or role in cls.nodes):
                roles.setdefault(role, {})[setting] = value
            else:
                own[name] = value
        options = build_settings(cls, own, "option").model_copy(update={"roles": roles})
        if virtual:
            check_mode(options, next(iter(virtual)))
            told = {"virtual": build_settings(VirtualTime, virtual, "option")}
            options = options.model_copy(update=told)
        options = options.completed()
        load_robot(options.robot, options.kinds)
        return options

    @classmethod
    def _late(cls) -> dict[str, Setting]:
        """What can be late and lost, where time can be virtual."""
        return declared_settings(VirtualTime) if "virtual" in cls.model_fields else {}

    @model_validator(mode="after")
    def _nobody_computes(self) -> "RunOptions":
        if self.controller == NOBODY:
            refuse_others(self, {"device"}, f"controller {NOBODY!r}, a node of yours")
        return self


class PlantOptions(RunOptions):
    """A loop around a simulated plant, which is not what filter and controller know of it."""

    mode: str = "wall"
    virtual: VirtualTime = Field(VirtualTime(), json_schema_extra={"hidden": True})

    @property
    def is_virtual(self) -> bool:
        """Whether time is virtual, and the run one process without nodes."""
        return self.mode == MODE

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

    robot: Annotated[str, AfterValidator(absolute_file)] = Field(
        "",
        description="a robot of config/robots, or a YAML file; empty: licher2025_chain, whose "
        "filter estimates hysteresis, hoses and lengths, if nempc or rod_mpc controls the exact "
        "rod, otherwise licher2025",
        json_schema_extra=_known(available("robots")),
    )
    mode: Literal["wall", "lockstep", "virtual"] = Field(
        "wall",
        description="wall: paced by the wall clock; lockstep: each cycle waits for the one "
        "before; virtual: as on the wall clock of a machine of the given speed, without nodes and "
        "as fast as it computes",
    )
    plant: Place = Field(
        "",
        description=f"simulated plant; empty: the robot's own; {_A_PLACE}",
        json_schema_extra=_known(registry.choices("plant")),
    )
    processes: Literal["auto", "each", "one"] = Field(
        "auto",
        description="each: every part of the loop is a process of its own; one: all of them share "
        "one on a single core, which takes less; auto: one on fewer than 1.5 cores where the loop "
        "needs more",
    )

    @property
    def node_mode(self) -> str:
        """Of every node or block: on virtual time they are those of the wall clock."""
        return "wall" if self.is_virtual else self.mode

    def of(self, role: str) -> Parameters:
        """See RunOptions; of a rod's plant also the usual plant errors."""
        usual: Parameters = {}
        if role == "plant" and (errors := default_plant_errors(self)):
            usual["plant_errors"] = errors
        return usual | super().of(role)

    def completed(self) -> "SimulationOptions":
        """See RunOptions."""
        return self if self.robot else self.model_copy(update={"robot": default_robot(self)})
