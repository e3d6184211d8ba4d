"""What options mean together: which fit the robot and each other, and what plays the roles.

The options themselves are in `run_options`.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from pydantic.fields import FieldInfo

from softcr_estimation.estimator_settings import in_words
from softcr_models.devices import gpu_name, resolve_device, what_cuda_lacks
from softcr_models.errors import UserError, did_you_mean
from softcr_models.models import make_model, model_class
from softcr_models.robots.kinds import KINDS
from softcr_models.robots.obstacle_files import load_obstacles
from softcr_models.robots.robot import kind_of, load_robot
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.settings import registry
from softcr_runtime.settings.loops import loop_of
from softcr_runtime.settings.node_settings import build_settings, parsed
from softcr_runtime.settings.plugin_settings import settings_class
from softcr_simulation.errors.plant_errors import SAME_STRUCTURE
from softcr_simulation.errors.presets import errors_of

if TYPE_CHECKING:
    from softcr_tools.running.run_options import RunOptions, SimulationOptions

ROLES: tuple[registry.Kind, ...] = ("controller", "estimator", "plant", "reference")
"""Options that name something of the registry, or a class in a file."""

NOBODY = "none"
"""In place of a controller or a device: a node of somebody else does its work."""

OF_CONTROLLER = {"controller_file", "population", "device"}
OF_SAME_STRUCTURE = {
    "bending_compliance_factor", "tip_mass_factor", "tip_noise_mm", "payload_kg", "loads",
    "obstacles",
}  # fmt: skip
OF_OWN_PLANT = {
    "tip_noise_mm": "tip_noise", "payload_kg": "payload", "loads": "loads",
    "obstacles": "obstacles", "plant_intervals": "intervals", "plant_errors": "plant_errors",
}  # fmt: skip
"""Options of the robot's own plant, and its settings that they are."""

OF_ERRORS = {
    "bending_compliance_factor": "bending_factor", "tip_mass_factor": "tip_mass_factor",
    "tip_noise_mm": "tip_noise", "payload_kg": "payload_mass",
}  # fmt: skip
"""The same where the plant has the setting `errors`, and the plant error that each of them is."""

ROD_CLOSED_LOOP = {
    "controller", "controller_file", "model", "filter_model", "network", "population", "learned",
    "device",
}  # fmt: skip


def settings_of_plant(robot: str) -> dict[str, FieldInfo]:
    """The settings of a robot's own plant, by name.

    Raises:
        UserError: the robot cannot be loaded, or has no plant that can be used.
    """
    plant = registry.resolve("plant", kind_of(robot))
    return dict(settings_class(plant).model_fields)


def numbers_of_plant(options: "SimulationOptions") -> Parameters:
    """What options say of the robot's own plant, as its parameters."""
    told: Parameters = {
        "intervals": options.plant_intervals,
        "payload": options.payload_kg,
        "errors": _errors(options),
    }
    known = settings_of_plant(options.robot)
    if "tip_noise" in known:
        noise = options.tip_noise_mm
        told["tip_noise"] = noise * 1e-3 if noise >= 0.0 else known["tip_noise"].default
    files = {name: getattr(options, name) for name in ("plant_errors", "loads", "obstacles")}
    told |= {name: file for name, file in files.items() if file}
    return {name: value for name, value in told.items() if name in known}


def _errors(options: "SimulationOptions") -> str:
    """The plant errors that were given one by one, by options and for the role."""
    values = {
        "bending_compliance_factor": options.bending_compliance_factor,
        "tip_mass_factor": options.tip_mass_factor,
        "tip_noise_mm": options.tip_noise_mm * 1e-3,
        "payload_kg": options.payload_kg,
    }
    given = {  # below 0 a noise is that of the file
        OF_ERRORS[option]: value for option, value in values.items()
        if option in options.changed and value >= 0.0
    }  # fmt: skip
    alone = options.plugin_settings.get("plant", {}).get("errors", "")
    return ",".join(filter(None, [in_words(given), str(alone)]))


def is_a_class(role: registry.Kind, named: str) -> bool:
    """Whether what is named for a role is a class, by a name of the registry or by its place."""
    if role == "controller" and named == NOBODY:
        return False
    return bool(named) and not (role == "reference" and named in registry.MOTIONS)


def named_for(options: "RunOptions", role: registry.Kind) -> str:
    """What plays a role by its name; the robot's own plant where none is named."""
    named = str(getattr(options, role, ""))
    return kind_of(options.robot) if role == "plant" and not named else named


def plugin_class(options: "RunOptions", role: registry.Kind) -> Any:
    """The class that plays a role; None where a known reference, or a node of somebody else
    does, or nothing of the system."""
    named = named_for(options, role)
    if role not in type(options).model_fields or not is_a_class(role, named):
        return None
    return registry.resolve(role, named)


def settings_of_plugins(options: "RunOptions", given: Mapping[str, Any]) -> dict[str, Parameters]:
    """Settings of all that is named, by role and name, from values or texts by `role.name`."""
    declared = {
        f"{role}.{name}": setting
        for role in ROLES
        if plugin_class(options, role) is not None
        for name, setting in registry.declared(role, named_for(options, role)).items()
    }
    found: dict[str, Parameters] = {}
    for full, value in given.items():
        role, _, name = full.partition(".")
        if full not in declared:
            known = ", ".join(each for each in declared if each.startswith(f"{role}.")) or "none"
            near = did_you_mean(full, declared)
            raise UserError(f"option {full} = {value!r}: unknown; {near}known are {known}")
        if isinstance(value, str):
            value = parsed(declared[full], value, f"option {full}")
        found.setdefault(role, {})[name] = value
    for role in [role for role in ROLES if role in found]:
        plugin, named = plugin_class(options, role), named_for(options, role)
        block = plugin if issubclass(plugin, BlockBase) else registry.runner(role)
        offered = {name: value for name, value in found[role].items() if name in block.offered}
        own = {name: value for name, value in found[role].items() if name not in offered}
        try:
            build_settings(block.Settings, offered)
            if ":" in named:
                build_settings(settings_class(plugin), own)
        except UserError as error:
            raise UserError(f"{role} {named!r}: {error}") from None
    return found


def check_classes(options: "RunOptions") -> None:
    """Raise UserError for a class that cannot be used, or not together with another one."""
    for role in ROLES:
        if ":" in getattr(options, role, ""):
            registry.declared(role, getattr(options, role))
    for model in (options.model, options.filter_model):
        if ":" in model:
            model_class(model)
    controller = plugin_class(options, "controller")
    if controller is None or not getattr(controller, "needs_state", True):
        return
    if not getattr(plugin_class(options, "estimator"), "gives_state", True):
        raise UserError(
            f"controller = {options.controller!r} with estimator = {options.estimator!r}: "
            "needs a state and gets the tip alone; must be one with needs_state = False"
        )
    from softcr_models.rod_model.rod_model import (
        RodModel,  # what compiles is imported where it is asked
    )

    models = options.model, options.filter_model
    rods = [issubclass(model_class(model), RodModel) for model in models]
    if models[0] != models[1] and not all(rods):
        raise UserError(
            f"model = {models[0]!r} with filter_model = {models[1]!r}: the controller gets states "
            "of another model; must be the same, or both of rods: rod, ddpinn"
        )


def check_devices(options: "RunOptions") -> None:
    """Raise UserError for a device that a model has not, or that is not here."""
    of_filter = options.plugin_settings.get("estimator", {}).get("device", "cpu")
    chosen = {
        "device": (options.device, options.model),
        "estimator.device": (of_filter, options.filter_model),
    }
    for name, (device, model) in chosen.items():
        if device == "cpu":
            continue
        if "device" not in settings_class(model_class(model)).model_fields:
            raise UserError(
                f"{name} = {device!r} with model {model!r}: which computes on the processor alone"
            )
        where = resolve_device(device, _library(model))
        if name == "device" and where == device and (refused := _rod_refused(options)):
            raise UserError(f"device = 'cuda': {refused}")


def where_it_computes(options: "RunOptions") -> str:
    """In words, where the controller's model computes; empty where nobody asked for a GPU."""
    if options.device == "cpu":
        return ""
    lacks = what_cuda_lacks(_library(options.model)) or _rod_refused(options)
    return f"the processor: {lacks}" if lacks else gpu_name()


def _rod_refused(options: "RunOptions") -> str:
    """Why the exact rod of the robot is none for a GPU; empty if it is one, or not the model."""
    if options.model != "rod":
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


def check_fit(options: "RunOptions") -> None:
    """Raise UserError for an option that would be left without effect by the robot, or a class that
    is for other kinds of robots."""
    kind = kind_of(options.robot)
    whose, loop = f"robot {options.robot!r}, {KINDS[kind].words}", loop_of(kind)
    known, of_model = settings_of_plant(options.robot), settings_class(model_class(kind))
    has = {name for name, setting in OF_OWN_PLANT.items() if setting in known}
    has |= {*OF_ERRORS} if "errors" in known else set()
    without = {*OF_OWN_PLANT, *OF_ERRORS} - has
    without |= set() if "model_file" in of_model.model_fields else {"model_file"}
    try:
        refuse_others(options, loop.unused | without, whose)
    except ValueError as error:
        raise UserError(str(error)) from None
    for role in ROLES:
        named = getattr(options, role, "")
        allowed = getattr(plugin_class(options, role), "kinds", None)
        if allowed is not None and kind not in allowed:
            words = " or ".join(KINDS[each].words for each in allowed)
            raise UserError(f"{role} = {named!r} for {whose}: is for {words}")
    loop.check(options)


def check_budget(told: Mapping[str, Mapping[str, Any]], mode: str) -> None:
    """Raise UserError where computing time is limited, but no clock says how much has passed."""
    if mode != "wall" and "budget" in told.get("controller", {}):
        raise UserError(
            f"controller.budget in mode {mode!r}: is without effect, for there a tick computes to "
            "its end; must be left out, or the mode be wall"
        )


def check_surroundings(options: "RunOptions") -> None:
    """Raise UserError for a file of loads, obstacles, plant errors or a model that is wrong, or not
    for the robot."""
    loads, obstacles = (getattr(options, name, "") for name in ("loads", "obstacles"))
    if loads:
        from softcr_simulation.scripted_loads import load_script

        load_script(loads, load_robot(options.robot))
    if obstacles:
        load_obstacles(obstacles)
    left_out_of_preset(options)
    if model_file := getattr(options, "model_file", ""):
        make_model(
            kind_of(options.robot), load_robot(options.robot, None), {"model_file": model_file}
        )


def left_out_of_preset(options: "RunOptions") -> str:
    """What a preset of plant errors has that says nothing to the robot, in one line.

    Raises:
        UserError: a file of plant errors that is wrong, or not for the robot.
    """
    errors = getattr(options, "plant_errors", "")
    if errors in ("", SAME_STRUCTURE):
        return ""
    return errors_of(load_robot(options.robot), errors).told


def refuse_others(options: "RunOptions", names: Collection[str], what: str) -> None:
    """Raise ValueError for the first of some options that is not left at its default."""
    for name, declared in type(options).model_fields.items():
        value = getattr(options, name)
        if name in names and value != declared.default:
            raise ValueError(f"{name} = {value!r}: has no meaning for {what}")
