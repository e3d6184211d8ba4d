"""Systems as data: which nodes run, with which numbers, in which order.

`softcr up` and the launch files start the same description; simulation and hardware differ in
nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_models.errors import UserError
from softcr_models.robot_files import WORDS, Kind, kind_of, load_robot_file
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_runtime.settings import Setting, build_settings, declared_settings

Parameter = bool | int | float | str
Parameters = dict[str, Parameter]


@dataclass(frozen=True)
class NodeSpec:
    """One lifecycle node: the module that runs it and its ROS parameters.

    The executable under `ros2 run softcr`, and the node's name, is the last part of the module.
    """

    module: str
    parameters: Parameters = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Node name and executable."""
        return self.module.rpartition(".")[2]

    def with_parameters(self, parameters: Parameters) -> "NodeSpec":
        """The node with more parameters."""
        return replace(self, parameters=self.parameters | parameters)


@dataclass(frozen=True)
class System:
    """What runs together.

    Nodes are started and configured in the order of `nodes`, activated in the order of `activation`
    (names of all nodes) and taken down in the reverse order of `nodes`: what may move the robot
    comes last in it, so that it stops first.
    """

    name: str
    nodes: tuple[NodeSpec, ...]
    activation: tuple[str, ...]
    duration: float  # of the run after the last activation [s]
    simulated_time: bool  # the duration counts on /clock, otherwise on the wall clock
    controller: str  # node to deactivate at once when another one dies
    begin: tuple[str, ...] = ()
    """Trigger services, called in this order once all nodes are active; the run begins when the
    last of them has agreed."""

    def __post_init__(self) -> None:
        names = sorted(node.name for node in self.nodes)
        if names != sorted(self.activation) or self.controller not in names:
            raise ValueError(
                f"system {self.name}: activation {self.activation} and controller "
                f"{self.controller} must name its nodes {names}, each once"
            )


CARRIED = {"rod": 1000, "ddpinn": 32}  # candidates of the nempc at 70 Hz on two cores


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
    reference: Literal["setpoint", "circle", "chirp_circle", "trajectory", "tip_circle", "file"] = (
        Field("trajectory", description="what the rod should do")
    )
    reference_file: str = Field("", description="CSV or NPZ with the reference 'file'")
    controller: Literal["nempc", "rod_mpc"] = Field(
        "nempc", description="evolutionary, or by the rod's gradients"
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
        description="candidates of the nempc; 0: what two cores carry, 1000 on the rod, 32 on its "
        "network",
    )
    horizon: int = Field(8, ge=2, le=200, description="control periods the controller looks ahead")

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
                f"population = {self.population}: must be a whole number from 8, or 0 for what two "
                "cores carry"
            )
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

    mode: Literal["wall", "lockstep"] = Field(
        "wall", description="paced by the wall clock, or each cycle waiting for the one before"
    )
    plant_intervals: int = Field(
        10, ge=2, le=MAX_INTERVALS, description="intervals of the simulated rod"
    )
    estimator: Literal["rod", "cc"] = Field(
        "rod",
        description="the whole rod from its tip; or one constant-curvature arc from the sensor "
        "under its base, in open loop (feedforward)",
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


ARM_RATE = 50.0
"""Of an arm's cameras, as on Dalenberg's platform (Sec. VI-B) [Hz]."""

_ROD_CLOSED_LOOP = {"controller", "model", "filter_model", "network", "population"}
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
    values = {name: _parsed(declared.get(name), text) for name, text in texts.items()}
    options = build_settings(kind, values)
    load_robot_file(options.robot, options.kinds)
    _check_fit(options, kind_of(options.robot))
    return options


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


def simulation_system(options: SimulationOptions, bag: Path) -> System:
    """Simulated plant, estimator, reference, controller and recorder around one robot.

    The recorder comes first and leaves last; the plant is configured before those that listen to it
    and activated after them, so that nothing of the run's first instant is lost. The robot of an
    arm file gets the system of `arm_system`, the estimator `cc` an open loop.
    """
    if kind_of(options.robot) == "arm":
        return arm_system(options, bag)
    common: Parameters = {"robot": options.robot, "mode": options.mode}
    lockstep = options.mode == "lockstep"
    simulator = NodeSpec(
        "softcr_hardware.nodes.simulator",
        common
        | {
            "seed": options.seed,
            "intervals": options.plant_intervals,
            "bending_compliance_factor": options.bending_compliance_factor,
            "tip_mass_factor": options.tip_mass_factor,
            "tip_noise": options.tip_noise_mm * 1e-3,
        }
        | priority(common, 40)
        # On the wall clock the plant runs until it is told to stop, so that the loop is whole up
        # to the moment the controller leaves it.
        | ({"duration": options.duration} if lockstep else {}),
    )
    recorder, estimator, reference, controller = loop_nodes(options, common, bag)
    if options.estimator == "cc":
        estimator = NodeSpec("softcr_estimation.nodes.cc_estimator", common | priority(common, 30))
        controller = NodeSpec(
            "softcr_control.nodes.feedforward",
            common
            | {"reference": options.reference, "duration": options.duration}
            | priority(common, 20),
        )
    return System(
        name="simulation",
        nodes=(recorder, simulator, estimator, reference, controller),
        activation=tuple(
            node.name for node in (recorder, estimator, reference, controller, simulator)
        ),
        duration=options.duration,
        simulated_time=lockstep,
        controller=controller.name,
    )


def arm_system(options: SimulationOptions, bag: Path) -> System:
    """Simulated arm, its reference, `apcc_controller` and recorder around one arm file.

    In the order of `simulation_system`, for its reasons.
    """
    common: Parameters = {"robot": options.robot, "mode": options.mode, "rate_hz": ARM_RATE}
    lockstep = options.mode == "lockstep"
    recorder = NodeSpec(
        "softcr_tools.nodes.recorder", common | {"bag": str(bag)} | priority(common, 10)
    )
    simulator = NodeSpec(
        "softcr_hardware.nodes.simulator",
        common
        | {
            "seed": options.seed,
            "payload": options.payload_kg,
            "tip_noise": options.tip_noise_mm * 1e-3,
        }
        | priority(common, 40)
        | ({"duration": options.duration} if lockstep else {}),
    )
    reference = NodeSpec(
        "softcr_control.nodes.tip_reference",
        common
        | {"reference": options.reference, "duration": options.duration}
        | priority(common, 25)
        | ({"file": options.reference_file} if options.reference_file else {}),
    )
    controller = NodeSpec(
        "softcr_control.nodes.apcc_controller",
        common | {"setpoints": "paired", "adaptation": options.adaptation} | priority(common, 20),
    )
    nodes = (recorder, simulator, reference, controller)
    return System(
        name="simulation",
        nodes=nodes,
        activation=(recorder.name, reference.name, controller.name, simulator.name),
        duration=options.duration,
        simulated_time=lockstep,
        controller=controller.name,
    )


def loop_nodes(
    options: RunOptions, common: Parameters, bag: Path
) -> tuple[NodeSpec, NodeSpec, NodeSpec, NodeSpec]:
    """Recorder, estimator, reference and controller, which every closed loop has.

    Args:
        options: of the run.
        common: parameters of all of them.
        bag: to record into.
    """
    recorder = NodeSpec(
        "softcr_tools.nodes.recorder", common | {"bag": str(bag)} | priority(common, 10)
    )
    estimator = NodeSpec(
        "softcr_estimation.nodes.estimator",
        common | _model(options, options.filter_model) | priority(common, 30),
    )
    reference = NodeSpec(
        "softcr_control.nodes.reference",
        common
        | {
            "reference": options.reference,
            "horizon": options.horizon,
            "duration": options.duration,
        }
        | priority(common, 25)
        | ({"file": options.reference_file} if options.reference_file else {}),
    )
    return recorder, estimator, reference, _controller(options, common | {"seed": options.seed})


def priority(common: Parameters, value: int) -> Parameters:
    """Along the chain what comes first goes first; in lock-step everybody waits for it anyway."""
    return {"realtime_priority": value} if common["mode"] == "wall" else {}


def _controller(options: RunOptions, seeded: Parameters) -> NodeSpec:
    parameters = seeded | {"horizon": options.horizon} | priority(seeded, 20)
    parameters |= _model(options, options.model)
    if options.controller == "rod_mpc":
        return NodeSpec("softcr_control.nodes.rod_mpc", parameters)
    population = options.population or CARRIED[options.model]
    return NodeSpec(
        "softcr_control.nodes.nempc_controller", parameters | {"population": population}
    )


def _model(options: RunOptions, model: str) -> Parameters:
    if model == "rod":
        return {}
    chosen: Parameters = {"model": model}
    return chosen | ({"network": options.network} if options.network else {})


def _parsed(setting: Setting | None, text: str) -> Parameter:
    """A text as the type of its setting; unchanged where it is none, for the check that follows."""
    convert = {"integer": int, "number": float}.get(setting.kind if setting else "", str)
    try:
        return convert(text)
    except ValueError:
        return text
