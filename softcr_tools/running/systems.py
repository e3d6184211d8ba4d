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
from softcr_runtime.settings.loops import loop_of
from softcr_tools.running.roles import NOBODY, part_of, settings_of
from softcr_tools.running.run_options import RunOptions, SimulationOptions

RECORDER = "softcr_runtime.bags.recorder_node"
LOOP = "loop"
"""Process of the parts of a loop that share one."""


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
    loop = [simulator, *(part for part in others if part is not None)]
    if options.processes == "one":
        loop = [part.in_process(LOOP) if part.is_block else part for part in loop]
    return _in_order(options, recorder, *loop)


def loop_parts(
    options: RunOptions, common: Parameters, bag: Path
) -> tuple[Part, Part | None, Part | None, Part | None]:
    """Recorder into a bag, estimator, reference and controller, which every closed loop has; no
    controller where a node of somebody else commands, and nothing in a role that the robot's kind
    leaves free."""
    told = {"bag": str(bag)} | priority(common, 10) | options.of("recorder")
    recorder = Part("recorder", RECORDER, common | told)
    of_model = common | loop_of(kind_of(options.robot)).of_model(options)
    of_filter = of_model | priority(common, 30) | _found_before(options)
    estimator = part_of(options, "estimator", of_filter)
    of_controller = of_model | {"seed": options.seed} | priority(common, 20)
    if options.device != "cpu":
        of_controller["device"] = options.device
    controller = part_of(options, "controller", of_controller)
    return recorder, estimator, _reference(options, common, controller), controller


def _found_before(options: RunOptions) -> Parameters:
    """Where the filter's parameters begin: where they ended in the last repetition of a motion."""
    learned_file = str(options.of("reference").get("learned", ""))
    if not learned_file or "begins_with" not in settings_of(options, "estimator"):
        return {}
    path = Path(learned_file)
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


def _simulator(options: SimulationOptions, common: Parameters) -> Part:
    # On the wall clock the plant runs until it is told to stop, so that the loop is whole up to the
    # moment the controller leaves it.
    ends: Parameters = {"duration": options.duration} if options.mode == "lockstep" else {}
    parameters = common | {"seed": options.seed} | priority(common, 40) | ends
    if options.controller == NOBODY:  # a node of somebody else tells one command at a time
        parameters |= {"answers_on": "command"}
    part = part_of(options, "plant", parameters)
    assert part is not None  # every kind has a plant
    return part


def _reference(options: RunOptions, common: Parameters, controller: Part | None) -> Part | None:
    """What the controller's model follows, as far ahead as the settings of its block look, or those
    of another shipped controller that may take its place."""
    from softcr_control.reference.block import USUAL_HORIZON  # brings kernels with it

    horizon: int | None = None
    if controller is not None:
        block: type[BlockBase] = load_class(controller.runs, "block", BlockBase)
        horizon = getattr(block.settings_of(controller.parameters), "horizon", None)
    parameters = common | {"duration": options.duration} | priority(common, 25)
    parameters |= {"horizon": max(horizon, USUAL_HORIZON)} if horizon else {}
    model = options.of("controller").get("model", "")
    parameters |= {"model": model} if model not in ("", "rod") else {}
    return part_of(options, "reference", parameters)
