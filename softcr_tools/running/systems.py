"""Systems as data: which blocks and nodes run, with which numbers, in which order.

`softcr up` and the launch files start the same description. Simulation and hardware differ in the
parts that stand for the robot, and in how samples are joined and commands are timed.
"""

from pathlib import Path

from softcr_control.predictive.learned_motion import LearnedMotion
from softcr_estimation.estimator_settings import in_words
from softcr_models.plugins import load_class
from softcr_models.robots.robot import kind_of, load_robot
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.system import Parameters, Part, System
from softcr_runtime.settings import registry
from softcr_tools.running.node_parameters import with_options_file
from softcr_tools.running.option_checks import NOBODY
from softcr_tools.running.run_options import RunOptions, SimulationOptions

ARM_RATE = 50.0
"""Of an arm's cameras, as on the platform of Dalenberg's thesis, Sec. VI-B [Hz]."""

STRAIN_RATE, STRAIN_RATE_MPC = 200.0, 50.0
"""Of the cycles of a planar strain robot: at 100 Hz its regulator, whose answers come a cycle late,
swings; predictive controllers take longer [Hz]."""

STRAIN_STEP = 0.005
"""Of what filter and controller of such a robot predict with [s]."""

RECORDER = "softcr_runtime.bags.recorder_node"


def simulation_system(options: SimulationOptions, bag: Path) -> System:
    """Simulated plant, estimator, reference, controller and recorder around one robot.

    What commands is the last part. The recorder comes first and leaves last; the plant is
    configured before those that listen to it
    and activated after them, so that nothing of the run's first instant is lost. A robot with
    tendons gets the system of `arm_system`, one of type strain that of `strain_system`; an
    estimator of an open loop gets `feedforward`.
    """
    kind = kind_of(options.robot)
    if kind != "rod":
        return (arm_system if kind == "arm" else strain_system)(options, bag)
    common: Parameters = options.of_every_node | {"mode": options.node_mode}
    rod: Parameters = {"intervals": options.plant_intervals, "errors": _errors(options)}
    files = {name: getattr(options, name) for name in ("plant_errors", "loads", "obstacles")}
    simulator = _simulator(options, common, rod | {name: f for name, f in files.items() if f})
    recorder, estimator, reference, controller = loop_parts(options, common, bag)
    if options.estimator == "cc":
        estimator = registry.part("estimator", "cc", common | priority(common, 30))
        motion: Parameters = {"reference": options.reference, "duration": options.duration}
        controller = Part(
            "feedforward",
            "softcr_control.open_loop.feedforward:Feedforward",
            common | motion | priority(common, 20),
        )
    parts = (recorder, simulator, estimator, reference)
    return _in_order(options, *parts, *([controller] if controller else []))


def _errors(options: SimulationOptions) -> str:
    """The plant errors that were given one by one, by options and for the role."""
    numbers = {
        "bending_factor": ("bending_compliance_factor", options.bending_compliance_factor),
        "tip_mass_factor": ("tip_mass_factor", options.tip_mass_factor),
        "tip_noise": ("tip_noise_mm", options.tip_noise_mm * 1e-3),
        "payload_mass": ("payload_kg", options.payload_kg),
    }
    given = {  # below 0 a noise is that of the file
        n: value for n, (option, value) in numbers.items()
        if option in options.changed and value >= 0.0
    }  # fmt: skip
    alone = options.plugin_settings.get("plant", {}).get("errors", "")
    return ",".join(filter(None, [in_words(given), str(alone)]))


def arm_system(options: SimulationOptions, bag: Path) -> System:
    """Simulated arm, its reference, `apcc_controller` and recorder, in the same order."""
    common: Parameters = options.of_every_node | {"mode": options.node_mode, "rate_hz": ARM_RATE}
    arm: Parameters = {"payload": options.payload_kg, "tip_noise": options.tip_noise_mm * 1e-3}
    simulator = _simulator(options, common, arm)
    reference = Part(
        "tip_reference",
        "softcr_control.reference.tip_block:TipReferenceBlock",
        common
        | {"reference": options.reference, "duration": options.duration}
        | priority(common, 25)
        | ({"file": options.reference_file} if options.reference_file else {}),
    )
    told: Parameters = {"setpoints": "paired", "adaptation": options.adaptation}
    if options.reference == registry.GOAL:
        of_goal = common | {"horizon": 1, "duration": options.duration} | priority(common, 25)
        of_goal |= options.plugin_settings.get("reference", {})
        reference = registry.part("reference", registry.GOAL, of_goal)
        told["setpoint_topic"] = "reference/output"
    controller = Part(
        "apcc_controller",
        "softcr_papers.dalenberg2024.apcc.block:ApccBlock",
        common | told | priority(common, 20),
    )
    return _in_order(options, _recorder(common, bag), simulator, reference, controller)


def strain_system(options: SimulationOptions, bag: Path) -> System:
    """Simulated planar strain robot, and the loop that every robot has around it."""
    rate = STRAIN_RATE_MPC if options.controller in registry.predictive() else STRAIN_RATE
    common: Parameters = options.of_every_node | {"mode": options.node_mode, "rate_hz": rate}
    simulator = _simulator(options, common, {"tip_noise": options.tip_noise_mm * 1e-3})
    recorder, estimator, reference, controller = loop_parts(options, common, bag)
    parts = (recorder, simulator, estimator, reference)
    return _in_order(options, *parts, *([controller] if controller else []))


def loop_parts(
    options: RunOptions, common: Parameters, bag: Path
) -> tuple[Part, Part, Part, Part | None]:
    """Recorder into a bag, estimator, reference and controller, which every closed loop has; no
    controller where a node of somebody else commands."""
    parameters = common | _model(options, options.filter_model) | priority(common, 30)
    parameters |= _of_strain_model(options)
    parameters |= _found_before(options)
    parameters |= options.plugin_settings.get("estimator", {})
    estimator = registry.part("estimator", options.estimator, parameters)
    controller = None if options.controller == NOBODY else _controller(options, common)
    reference = _reference(options, common, controller)
    return _recorder(common, bag), estimator, reference, controller


def _found_before(options: RunOptions) -> Parameters:
    """Where the filter's parameters begin: where they ended in the last repetition of a motion."""
    takes = "begins_with" in registry.declared("estimator", options.estimator)
    if not (options.learned and takes):
        return {}
    path = Path(options.learned)
    learned = LearnedMotion.load(path)
    # here already: the filter of another robot would refuse its parameters, in other words
    learned.refuse_robot(path, load_robot(options.robot, ("rod", "arm", "strain")).name)
    return {"begins_with": in_words(learned.parameters)} if learned.parameters else {}


def priority(common: Parameters, value: int) -> Parameters:
    """Along the chain what comes first goes first; in lock-step everybody waits for it anyway."""
    return {"realtime_priority": value} if common["mode"] == "wall" else {}


def _in_order(options: SimulationOptions, *parts: Part) -> System:
    """Recorder, plant, the rest; the plant is activated last."""
    recorder, simulator, *others = parts
    return System(
        name="simulation",
        parts=parts,
        activation=tuple(part.name for part in (recorder, *others, simulator)),
        duration=options.duration,
        simulated_time=options.mode == "lockstep",
        controller=parts[-1].name,
        namespace=options.namespace,
    )


def _recorder(common: Parameters, bag: Path) -> Part:
    return Part("recorder", RECORDER, common | {"bag": str(bag)} | priority(common, 10))


def _simulator(options: SimulationOptions, common: Parameters, of_own_plant: Parameters) -> Part:
    # On the wall clock the plant runs until it is told to stop, so that the loop is whole up to the
    # moment the controller leaves it.
    ends: Parameters = {"duration": options.duration} if options.mode == "lockstep" else {}
    own = kind_of(options.robot)
    plant = options.plant or own
    parameters = common | {"seed": options.seed} | priority(common, 40) | ends
    parameters |= of_own_plant if plant == own else {}
    if options.controller == NOBODY:  # a node of somebody else tells one command at a time
        parameters |= {"answers_on": "command"}
    parameters |= options.plugin_settings.get("plant", {})
    if plant == own and (errors := of_own_plant.get("errors")):
        parameters |= {"errors": errors}  # those of the options among them
    return registry.part("plant", plant, parameters)


def _controller(options: RunOptions, common: Parameters) -> Part:
    parameters = common | {"seed": options.seed} | priority(common, 20)
    parameters |= _model(options, options.model)
    parameters |= _of_strain_model(options)
    for name in ("controller_file", "horizon", "population"):
        if value := getattr(options, name):  # 0 and nothing leave it to the controller
            parameters[name] = value
    if options.device != "cpu":
        parameters["device"] = options.device
    parameters |= options.plugin_settings.get("controller", {})
    return registry.part("controller", options.controller, parameters)


def _reference(options: RunOptions, common: Parameters, controller: Part | None) -> Part:
    """What the controller's model follows, as far ahead as the settings of its block look, or those
    of another shipped controller that may take its place."""
    from softcr_control.reference.block import USUAL_HORIZON  # brings kernels with it

    horizon: int | None = options.horizon
    if controller is not None:
        controller = with_options_file(controller, options)  # by a file of parameters
        block: type[BlockBase] = load_class(controller.runs, "block", BlockBase)
        horizon = getattr(block.settings_of(controller.parameters), "horizon", None)
    parameters = common | {"duration": options.duration} | priority(common, 25)
    parameters |= {"horizon": max(horizon, USUAL_HORIZON)} if horizon else {}
    parameters |= {"model": options.model} if options.model != "rod" else {}
    parameters |= {"file": options.reference_file} if options.reference_file else {}
    parameters |= {"learned": options.learned} if options.learned else {}
    parameters |= options.plugin_settings.get("reference", {})
    return registry.part("reference", options.reference, parameters)


def _of_strain_model(options: RunOptions) -> Parameters:
    """Of filter and controller: torques that are held, as the plant's, and equal steps, which cost
    a third of adapted ones and whose error is as smooth as optimisers need."""
    if kind_of(options.robot) != "strain":
        return {}
    file = getattr(options, "model_file", "")
    return ({"model_file": file} if file else {}) | {
        "longest_step": STRAIN_STEP,
        "held_torques": True,
    }


def _model(options: RunOptions, model: str) -> Parameters:
    if model == "rod":
        return {}
    return dict(model=model, **({"network": options.network} if options.network else {}))
