"""What options mean together: which fit the robot and each other.

The options themselves are in `run_options`.
"""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcr_models.devices import gpu_name, resolve_device, what_cuda_lacks
from softcr_models.errors import UserError
from softcr_models.models import make_model, model_class
from softcr_models.robots.kinds import KINDS
from softcr_models.robots.robot import kind_of, load_robot
from softcr_runtime.settings.loops import loop_of
from softcr_runtime.settings.plugin_settings import settings_class
from softcr_runtime.settings.registry import GOAL
from softcr_simulation.errors.plant_errors import SAME_STRUCTURE
from softcr_simulation.errors.presets import errors_of
from softcr_tools.running.roles import NOBODY, OPEN_LOOP, ROLES, class_of, settings_of
from softcr_tools.running.virtual_options import MODE

if TYPE_CHECKING:
    from softcr_tools.running.run_options import RunOptions

_PREDICTING = ("controller", "estimator")


def check(options: "RunOptions") -> None:
    """Raise UserError for options that do not fit the robot or each other, or have no effect."""
    _check_classes(options)
    _check_fit(options)
    _check_reference(options)
    _check_surroundings(options)
    _check_devices(options)
    mode = getattr(options, "mode", "wall")
    for role in options.roles:
        full = f"option {role}.{next(iter(options.roles[role]))}"
        value = getattr(options, role, "")
        if value in (NOBODY, "off"):
            raise UserError(f"{full}: has no meaning with {role} = {value!r}")
        if mode == MODE and role in options.nodes and role != "plant":
            raise UserError(f"{full}: has no meaning for mode {mode!r}, which has no nodes")
    if "budget" in options.of("controller") and mode != "wall":
        raise UserError(
            f"controller.budget in mode {mode!r}: is without effect, for there a tick computes to "
            "its end; must be left out, or the mode be wall"
        )


def check_mode(options: "RunOptions", name: str) -> None:
    """Raise UserError for an option of virtual time where time is not virtual."""
    mode = getattr(options, "mode", "wall")
    if mode != MODE:
        raise UserError(f"option {name}: has no meaning in mode {mode!r}; goes with --mode {MODE}")


def _check_classes(options: "RunOptions") -> None:
    for role in ROLES:
        if ":" in getattr(options, role, ""):
            settings_of(options, role)
    from softcr_models.rod_model.rod_model import RodModel  # what compiles is imported here

    controller = class_of(options, "controller")
    needs_state = controller is not None and getattr(controller, "needs_state", True)
    if needs_state and not getattr(class_of(options, "estimator"), "gives_state", True):
        raise UserError(
            f"controller = {options.controller!r} with estimator = {options.estimator!r}: "
            "needs a state and gets the tip alone; must be one with needs_state = False"
        )
    named = {role: options.model_of(role) for role in _PREDICTING}
    rods = [issubclass(model_class(model), RodModel) for model in named.values()]
    if needs_state and len({*named.values()}) > 1 and not all(rods):
        raise UserError(
            f"controller.model = {named['controller']!r} with estimator.model = "
            f"{named['estimator']!r}: the controller gets states of another model; must be the "
            "same, or both of rods: rod, ddpinn"
        )
    if needs_state and {*named.values()} == {"rod"} and class_of(options, "reference") is None:
        _check_intervals(options)


def _check_intervals(options: "RunOptions") -> None:
    """Raise UserError where states of a rod go to one of other intervals."""
    from softcr_models.prediction import RodSettings

    usual = RodSettings.model_fields["intervals"].default
    roles = (*_PREDICTING, "reference")
    found = {f"{role}.intervals": int(options.of(role).get("intervals", usual)) for role in roles}
    if len({*found.values()}) > 1:
        told = ", ".join(f"{name} = {value}" for name, value in found.items())
        raise UserError(f"{told}: they exchange states of one rod; must be the same")


def _check_devices(options: "RunOptions") -> None:
    for role in _PREDICTING:
        model = options.model_of(role)
        known = settings_class(model_class(model)).model_fields
        if options.of(role).get("network") and "network" not in known:
            raise UserError(f"{role}.network with model {model!r}: goes with model 'ddpinn'")
        if file := options.of(role).get("model_file"):
            make_model(model, load_robot(options.robot, None), {"model_file": file})
        of_run = role == "controller"
        name = "device" if of_run else f"{role}.device"
        device = options.device if of_run else str(options.of(role).get("device", "cpu"))
        if device == "cpu":
            continue
        if "device" not in known:
            raise UserError(
                f"{name} = {device!r} with model {model!r}: which computes on the processor alone"
            )
        where = resolve_device(device, _library(model))
        if of_run and where == device and (refused := _rod_refused(options)):
            raise UserError(f"device = 'cuda': {refused}")


def where_it_computes(options: "RunOptions") -> str:
    """In words, where the controller's model computes; empty where nobody asked for a GPU."""
    if options.device == "cpu":
        return ""
    lacks = what_cuda_lacks(_library(options.model_of("controller"))) or _rod_refused(options)
    return f"the processor: {lacks}" if lacks else gpu_name()


def _rod_refused(options: "RunOptions") -> str:
    """Why the exact rod of the robot is none for a GPU; empty if it is one, or not the model."""
    if options.model_of("controller") != "rod":
        return ""
    from softcr_models.cuda.source import lanes_of
    from softcr_models.prediction import RodSettings
    from softcr_models.rod.cosserat_rod import CosseratRod

    try:
        lanes_of(CosseratRod(load_robot(options.robot), RodSettings().intervals))
    except UserError as error:
        return str(error)
    return ""


def _library(model: str) -> str:
    """With which a model computes on a GPU."""
    return "rod" if model == "rod" else "torch"


def _check_fit(options: "RunOptions") -> None:
    """An option that would be left without effect by the robot, or a class that is for other
    kinds of robots."""
    kind = kind_of(options.robot)
    whose, loop = f"robot {options.robot!r}, {KINDS[kind].words}", loop_of(kind)
    refuse_others(options, loop.unused, whose)
    for role in [role for role in ROLES if role in type(options).model_fields]:
        allowed = getattr(class_of(options, role), "kinds", None)
        if allowed is not None and kind not in allowed:
            words = " or ".join(KINDS[each].words for each in allowed)
            raise UserError(f"{role} = {options.named(role)!r} for {whose}: is for {words}")
    loop.check(options)
    if options.estimator == OPEN_LOOP:
        refuse_others(options, {"controller", "device"}, "estimator cc, which runs in open loop")
        if options.reference in ("tip_circle", "file", GOAL) or ":" in options.reference:
            raise UserError(
                f"reference = {options.reference!r} with estimator 'cc': in open loop one that is "
                "made of pressures: setpoint, circle, chirp_circle, trajectory"
            )


def _check_reference(options: "RunOptions") -> None:
    file = str(options.of("reference").get("file", ""))
    if (options.reference == "file") != bool(file):
        raise UserError(
            f"reference = {options.reference!r} with reference.file = {file!r}: a file goes with "
            "reference 'file', and only with it"
        )
    if file and not Path(file).is_file():
        raise UserError(f"reference.file = {file!r}: no such file")


def _check_surroundings(options: "RunOptions") -> None:
    """Files of loads, obstacles and plant errors that are wrong, or not for the robot."""
    plant = class_of(options, "plant") if "plant" in type(options).model_fields else None
    settings: Any = settings_class(plant) if plant else None
    if hasattr(settings, "surroundings"):
        told = {n: v for n, v in options.of("plant").items() if n in settings.model_fields}
        settings(**told).surroundings(load_robot(options.robot))
    if hasattr(settings, "surroundings") or "plant" in options.nodes:
        left_out_of_preset(options)


def left_out_of_preset(options: "RunOptions") -> str:
    """What a preset of plant errors has that says nothing to the robot, in one line.

    Raises:
        UserError: plant errors that are wrong, or not for the robot.
    """
    told: Any = options.of("plant")
    named, others = told.get("plant_errors", ""), told.get("errors", "")
    if named in ("", SAME_STRUCTURE) and not others:
        return ""
    return errors_of(load_robot(options.robot), named, others).told


def refuse_others(options: "RunOptions", names: Collection[str], what: str) -> None:
    """Raise UserError for the first of some options that is not left at its default."""
    for name, declared in type(options).model_fields.items():
        value = getattr(options, name)
        if name in names and value != declared.default:
            raise UserError(f"{name} = {value!r}: has no meaning for {what}")
