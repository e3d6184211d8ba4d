"""Files of options: the tree of the command line, what counts more, and mistakes."""

from pathlib import Path

import pytest
import yaml
from kit.refusals import one_line

from softcr_models.errors import UserError
from softcr_runtime.ros.run_blocks import node_class
from softcr_runtime.settings.node_settings import Setting, nested, setting_values
from softcr_tools.cli import main
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system
from softcr_tools.running.rehearse import RehearsalOptions
from softcr_tools.running.roles import ROLES, settings_of
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system
from softcr_tools.visuals.part import with_visuals


@pytest.fixture
def write(tmp_path):
    def written(content) -> str:
        path = tmp_path / "params.yaml"
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        path.write_text(text)
        return str(path)

    return written


CALIBRATION = str(Path(__file__).parents[1] / "config" / "optitrack" / "licher2025.yaml")


def hardware(path, **options):
    chosen = HardwareOptions.of_options({"params_file": path, **options})
    return with_visuals(hardware_system(chosen, Path("bag")), chosen)


def simulation(path, **options):
    chosen = SimulationOptions.of_options({"params_file": path, **options})
    return with_visuals(simulation_system(chosen, Path("bag")), chosen)


def effective(part):
    """All values that a node begins with, by dotted name."""
    kind = node_class(part.runs, part.name)
    if part.is_block:
        return setting_values(kind.Block.settings_of(part.parameters))
    return setting_values(kind.Settings(**nested(part.parameters)))


def _other(setting: Setting, value):
    """Another value that a setting allows, near the one it has: rules between several hold."""
    if setting.choices:
        return next(each for each in setting.choices if each != value)
    if setting.is_list:
        return ["bending_compliance"]
    if setting.kind == "boolean":
        return not value
    if setting.kind == "string":
        return f"{value}_x"
    step = max(abs(value) * 1e-3, 1e-3) if setting.kind == "number" else 1
    high = setting.high if setting.high is not None else float("inf")
    return value + step if value + step <= high else value - step


_RULES = {"controller_file", "model", "network", "device", "learned", "file"}
"""Settings whose other value breaks a rule with others, or names what is not there."""


def test_every_setting_of_every_node_of_the_bench_is_reached(write):
    plain = HardwareOptions()
    names = {"controller": "nempc_controller"}
    roles = [role for role in (*ROLES, *plain.nodes) if role != "plant"]
    parts = {role: hardware("").part(names.get(role, role)) for role in roles}
    others = {}
    for role in roles:
        told, now = settings_of(plain, role).items(), effective(parts[role])
        others[role] = {name: _other(each, now[name]) for name, each in told if name not in _RULES}
    assert sum(map(len, others.values())) > 150
    system = hardware(write({role: nested(values) for role, values in others.items()}))
    for role, values in others.items():
        found = effective(system.part(parts[role].name))
        assert found == effective(parts[role]) | values


def test_a_file_and_words_give_equal_options(write):
    tree = {"controller": {"controller": "rod_mpc", "damping": 1e-3}}
    tree |= {"estimator": {"patience": 0.7}, "seed": 4, "mode": "lockstep"}
    words = {"controller": "rod_mpc", "controller.damping": "1e-3", "estimator.patience": "0.7",
             "seed": "4", "mode": "lockstep"}  # fmt: skip
    of_file = SimulationOptions.of_options({"params_file": write(tree)})
    assert of_file.model_copy(update={"params_file": ""}) == SimulationOptions.of_options(words)
    assert simulation(of_file.params_file).controller == "rod_mpc"
    arm = simulation(write({"robot": "dalenberg_robot1"}))
    assert arm.controller == "apcc_controller"


def test_costs_of_the_states_and_a_controllers_file_are_reached(write):
    told = {"costs": {"state": {"velocity": 0.25}}, "controller_file": "nempc_states"}
    system = hardware(write({"controller": told}))
    costs = effective(system.part("nempc_controller"))["costs.state"]
    assert costs["velocity"] == 0.25
    assert len(costs) > 1  # the others are of the file
    # 1e4 is text to YAML 1.1, a number to rcl; a whole number stands for a number
    parameters = simulation(write("controller: {costs: {tip_position: 1e4}}"))
    assert parameters.part("nempc_controller").parameters["costs.tip_position"] == 1e4
    path = write("optitrack: {limits: {fastest: 3}}")
    assert effective(hardware(path).part("optitrack"))["limits.fastest"] == 3.0


def test_the_reference_looks_as_far_ahead_as_the_controller(write):
    path = write({"controller": {"horizon": 12}})
    for system in (hardware(path), simulation(path)):
        horizons = [effective(system.part(n))["horizon"] for n in ("nempc_controller", "reference")]
        assert horizons == [12, 12]


def test_an_option_counts_more_than_the_file_also_where_it_says_the_default(write):
    path = write({"valves": {"interface": "eth7", "safety": {"operator_vent": 0.7}}, "seed": 5})
    assert hardware(path).part("valves").parameters["interface"] == "eth7"
    system = hardware(path, **{"valves.interface": "eth1", "seed": "1"})
    assert system.part("valves").parameters["interface"] == "eth1"
    assert system.part("valves").parameters["safety.operator_vent"] == 0.7
    assert system.part("nempc_controller").parameters["seed"] == 1


def test_frames_have_the_base_that_the_cameras_calibration_tells(write):
    shipped, cameras = "licher2025", {"optitrack": {"calibration": CALIBRATION}}
    both = cameras | {"visuals": {"calibration": shipped}}
    for content, told in (("{}", shipped), (cameras, CALIBRATION), (both, shipped)):
        system = hardware(write(content))
        assert system.part("visuals").parameters["calibration"] == told


def test_the_emulated_bench_gets_the_prefix_of_frames_from_a_file(write):
    path = write({"frame_prefix": "left_", "controller": {"costs": {"tip_position": 2e4}}})
    options = RehearsalOptions.of_options({"params_file": path, "namespace": "r"})
    assert options.prefix == "left_"
    system = hardware_system(options, Path("bag"))
    assert system.part("rod_mpc").parameters["costs.tip_position"] == 2e4


def test_the_command_line_has_the_settings_of_what_the_file_names(write, capsys):
    path = write({"controller": "rod_mpc"})
    words = ["up", "simulation", "--params-file", path, "--controller.dampng", "3"]
    assert main(words) == 2
    assert "did you mean --controller.damping?" in capsys.readouterr().err


OF = "params.yaml: option"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("estimator: {patience: 99}", f"{OF} estimator.patience = 99: must be a number from 0.1"),
        ("valves: {safety: {operator_vent: 0.1}}", "options valves.safety: operator: ages"),
        ("estimator: {patence: 0.8}", f"{OF} estimator.patence = 0.8: unknown; did you mean"),
        ("estimater: {patience: 0.8}", f"{OF} estimater.patience = 0.8: unknown"),
        ("estimator: {patience: null}", f"{OF} estimator.patience = None: must be a number"),
        ("[1, 2]", "params.yaml: holds a list, must hold a mapping"),
    ],
)
def test_a_mistake_is_one_line_with_the_place_the_value_and_what_is_allowed(write, content, line):
    with one_line(says=line):
        hardware(write(content))


def test_a_file_may_tell_what_is_late(write):
    path = write({"mode": "virtual", "controller": {"computing_ms": "5..35"}, "lost": 0.1})
    options = SimulationOptions.of_options({"params_file": path})
    assert (options.virtual.controller.computing_ms, options.virtual.lost) == ("5..35", 0.1)
    path = write({"mode": "virtual", "controller": {"population": 3}})
    with pytest.raises(UserError, match=r"params.yaml: option controller.population = 3: must"):
        SimulationOptions.of_options({"params_file": path})


VIRTUAL = {"mode": "virtual", "recorder.compression": "none"}


@pytest.mark.parametrize(
    ("kind", "given", "line"),
    [
        (HardwareOptions, {"optitrack": "none", "optitrack.body": "x"}, "with optitrack = 'none'"),
        (SimulationOptions, {"visuals": "off", "visuals.rate_hz": 5.0}, "with visuals = 'off'"),
        (SimulationOptions, VIRTUAL, "for mode 'virtual', which has no nodes"),
    ],
)
def test_settings_of_a_node_that_the_run_has_not_are_refused(kind, given, line):
    with pytest.raises(UserError, match=f"^option {list(given)[1]}: has no meaning {line}$"):
        kind.of_options(given)


def test_help_tells_the_defaults_of_the_run():
    of_rehearsal = RehearsalOptions.more_options({"controller": "nempc"})
    declared = {name: each for group in of_rehearsal.values() for name, each in group.items()}
    assert declared["valves.safety.require_operator"].default is False
    assert declared["controller.population"].default == 64
    assert declared["estimator.patience"].default == 2.5
    assert effective(hardware("").part("estimator"))["patience"] == 2.5
