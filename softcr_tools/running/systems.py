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
from softcr_runtime.settings.loops import loop_of
from softcr_tools.running.node_parameters import with_options_file
from softcr_tools.running.option_checks import NOBODY, numbers_of_plant
from softcr_tools.running.run_options import RunOptions, SimulationOptions

RECORDER = "softcr_runtime.bags.recorder_node"


def simulation_system(options: SimulationOptions, bag: Path) -> System:
    """Simulated plant, estimator, reference, controller and recorder around one robot.

    What commands is the last part. The recorder comes first and leaves last; the plant is
    configured before those that listen to it
    and activated after them, so that nothing of the run's first instant is lost. An estimator of an
    open loop gets `feedforward`.
    """
    common: Parameters = options.of_every_node | {"mode": options.node_mode}
    common |= loop_of(kind_of(options.robot)).common(options)
    simulator = _simulator(options, common)
    recorder, *others = loop_parts(options, common, bag)
    if options.estimator == "cc":
        motion: Parameters = {"reference": options.reference, "duration": options.duration}
        others[0] = registry.part("estimator", "cc", common | priority(common, 30))
        others[-1] = Part(
            "feedforward",
            "softcr_control.open_loop.feedforward:Feedforward",
            common | motion | priority(common, 20),
        )
    return _in_order(options, recorder, simulator, *(part for part in others if part is not None))


def loop_parts(
    options: RunOptions, common: Parameters, bag: Path
) -> tuple[Part, Part | None, Part | None, Part | None]:
    """Recorder into a bag, estimator, reference and controller, which every closed loop has; no
    controller where a node of somebody else commands, and nothing in a role that the robot's kind
    leaves free."""
    recorder = _recorder(common, bag)
    own = loop_of(kind_of(options.robot)).parts(options, common)
    if own:
        return recorder, own["estimator"], own["reference"], own["controller"]
    parameters = common | _model(options, options.filter_model) | priority(common, 30)
    parameters |= _of_model(options)
    parameters |= _found_before(options)
    parameters |= options.plugin_settings.get("estimator", {})
    estimator = registry.part("estimator", options.estimator, parameters)
    controller = None if options.controller == NOBODY else _controller(options, common)
    reference = _reference(options, common, controller)
    return recorder, estimator, reference, controller


def _found_before(options: RunOptions) -> Parameters:
    """Where the filter's parameters begin: where they ended in the last repetition of a motion."""
    takes = "begins_with" in registry.declared("estimator", options.estimator)
    if not (options.learned and takes):
        return {}
    path = Path(options.learned)
    learned = LearnedMotion.load(path)
    # here already: the filter of another robot would refuse its parameters, in other words
    learned.refuse_robot(path, load_robot(options.robot, None).name)
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


def _simulator(options: SimulationOptions, common: Parameters) -> Part:
    # On the wall clock the plant runs until it is told to stop, so that the loop is whole up to the
    # moment the controller leaves it.
    ends: Parameters = {"duration": options.duration} if options.mode == "lockstep" else {}
    own = kind_of(options.robot)
    plant = options.plant or own
    parameters = common | {"seed": options.seed} | priority(common, 40) | ends
    of_own_plant = numbers_of_plant(options) if plant == own else {}
    parameters |= of_own_plant
    if options.controller == NOBODY:  # a node of somebody else tells one command at a time
        parameters |= {"answers_on": "command"}
    parameters |= options.plugin_settings.get("plant", {})
    if errors := of_own_plant.get("errors"):
        parameters |= {"errors": errors}  # those of the options among them
    return registry.part("plant", plant, parameters)


def _controller(options: RunOptions, common: Parameters) -> Part:
    parameters = common | {"seed": options.seed} | priority(common, 20)
    parameters |= _model(options, options.model)
    parameters |= _of_model(options)
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


def _of_model(options: RunOptions) -> Parameters:
    """Of filter and controller, about the model of the robot's kind."""
    file: Parameters = {"model_file": told} if (told := getattr(options, "model_file", "")) else {}
    return file | loop_of(kind_of(options.robot)).of_model(options)


def _model(options: RunOptions, model: str) -> Parameters:
    if model == "rod":
        return {}
    return dict(model=model, **({"network": options.network} if options.network else {}))
