"""Files of ROS parameters for `softcr up`: what they reach, what counts more, and every mistake."""

from pathlib import Path

import pytest
import yaml

from softcr_models.errors import UserError
from softcr_runtime.ros.run_blocks import node_class
from softcr_runtime.settings.node_settings import Setting, declared_settings, setting_values
from softcr_runtime.settings.parameter_files import ParameterFile
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system
from softcr_tools.running.node_parameters import system_with_file
from softcr_tools.running.rehearse import RehearsalOptions
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


def of(parameters):
    return {"ros__parameters": parameters}


def hardware(path, warnings=None, **options):
    chosen = HardwareOptions.of_options({"params_file": path, **options})
    said = [] if warnings is None else warnings
    system = with_visuals(hardware_system(chosen, Path("bag")), chosen)
    return system_with_file(system, chosen, said.append)


def simulation(path, warnings=None, **options):
    chosen = SimulationOptions.of_options({"params_file": path, **options})
    said = [] if warnings is None else warnings
    system = with_visuals(simulation_system(chosen, Path("bag")), chosen)
    return system_with_file(system, chosen, said.append)


def effective(part):
    """All values that a node begins with, by dotted name."""
    kind = node_class(part.runs, part.name)
    if part.is_block:
        return setting_values(kind.Block.settings_of(part.parameters))
    return setting_values(kind.Settings(**_nested(part.parameters)))


def _nested(values):
    groups = {}
    for name, value in values.items():
        *path, leaf = name.split(".")
        group = groups
        for each in path:
            group = group.setdefault(each, {})
        group[leaf] = value
    return groups


# --- reach --------------------------------------------------------------------------------------


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


_FROM_OPTIONS = {"robot", "frame_prefix", "mode", "controller", "estimator", "reference", "model"}
"""That decide what runs, for all nodes: options say them, or a section for all nodes."""

_SYSTEM = {"bag", "sampling", "start"}
"""That follow from the system itself."""


def _declared(part):
    kind = node_class(part.runs, part.name)
    model = kind.Block.settings_model(part.parameters) if part.is_block else kind.Settings
    return declared_settings(model)


def test_every_parameter_of_every_node_of_the_bench_is_reached(write):
    plain = hardware("")
    own = {part.name: effective(part) for part in plain.parts}
    names = {part.name: list(_declared(part)) for part in plain.parts}
    assert sum(map(len, names.values())) > 160
    # as they are, all of them may stand in the file
    same = {f"/{node}": of({n: own[node][n] for n in names[node]}) for node in names}
    system = hardware(write(same))
    assert {part.name: effective(part) for part in system.parts} == own
    # and with other values
    others = {
        part.name: {
            name: _other(setting, own[part.name][name])
            for name, setting in _declared(part).items()
            if name not in _FROM_OPTIONS | _SYSTEM | _RULES.keys()
        }
        for part in plain.parts
    }
    system = hardware(write({f"/{node}": of(values) for node, values in others.items()}))
    for part in system.parts:
        assert effective(part) == own[part.name] | others[part.name]
    assert sum(map(len, others.values())) > 130


def test_what_decides_the_run_is_refused_for_one_node_and_says_where_it_is_chosen(write):
    plain = hardware("")
    for part in plain.parts:
        own = effective(part)
        for name, setting in _declared(part).items():
            if name in _FROM_OPTIONS | _SYSTEM:
                value = _other(setting, own[name])
                with pytest.raises(UserError) as caught:
                    hardware(write({part.name: of({name: value})}))
                line = str(caught.value)
                assert f"params.yaml: /{part.name}: parameter {name} = {value!r}" in line
                assert "this run decides it" in line
                chosen = name not in _SYSTEM | {"mode"}  # a bench has one mode
                assert (f"with --{name.replace('_', '-')}, or in a section /**" in line) == chosen


_RULES = {"controller_file": "unknown; known are"}
"""Parameters whose other value breaks a rule, and the words for it."""


def test_a_file_that_a_parameter_names_must_be_there(write):
    for name, words in _RULES.items():
        with pytest.raises(UserError, match=words):
            hardware(write({"nempc_controller": of({name: "nobodys"})}))


def test_costs_of_the_states_and_a_controllers_file_are_reached(write):
    told = {"costs": {"state": {"velocity": 0.25}}, "controller_file": "nempc_states"}
    system = hardware(write({"nempc_controller": of(told)}))
    costs = effective(system.part("nempc_controller"))["costs.state"]
    assert costs["velocity"] == 0.25
    assert len(costs) > 1  # the others are of the file


def test_the_reference_looks_as_far_ahead_as_the_controller_that_a_file_changes(write):
    path = write({"/nempc_controller": of({"horizon": 12})})
    for system in (hardware(path), simulation(path)):
        assert effective(system.part("nempc_controller"))["horizon"] == 12
        assert effective(system.part("reference"))["horizon"] == 12


# --- what counts more ---------------------------------------------------------------------------


def test_a_node_counts_more_than_a_wildcard_and_an_option_more_than_both(write):
    path = write(
        {
            "/valves": of({"interface": "eth7", "safety": {"operator_vent": 0.7}}),
            "/*": of({"interface": "eth5", "rate_hz": 100.0}),
            "/**": of({"interface": "eth6"}),
        }
    )
    valves = hardware(path).part("valves").parameters
    assert (valves["interface"], valves["rate_hz"]) == ("eth7", 100.0)
    assert valves["safety.operator_vent"] == 0.7
    # also where the option says what it would be anyway
    assert hardware(path, interface="eth1").part("valves").parameters["interface"] == "eth1"


@pytest.mark.parametrize(
    ("node", "parameter", "value", "option", "given", "found"),
    [
        ("optitrack", "server", "10.0.0.9", "optitrack", "127.0.0.1", "127.0.0.1"),
        ("optitrack", "command_port", 1600, "optitrack_port", "1510", 1510),
        ("force_torque", "host", "10.0.0.8", "force_torque", "192.168.1.1", "192.168.1.1"),
        ("force_torque", "rate_hz", 50.0, "force_torque_rate_hz", "200", 200.0),
        ("force_torque", "box_rate_hz", 500.0, "force_torque_records_hz", "1000", 1000.0),
        ("valves", "safety.require_operator", False, "deadman", "joystick", True),
        ("nempc_controller", "seed", 7, "seed", "1", 1),
        ("nempc_controller", "population", 32, "controller.population", "48", 48),
    ],
)
def test_options_with_other_names_count_more_too(
    write, node, parameter, value, option, given, found
):
    path = write({node: of({parameter: value})})
    assert hardware(path).part(node).parameters[parameter] == value
    assert hardware(path, **{option: given}).part(node).parameters[parameter] == found


def test_every_option_that_a_system_makes_a_parameter_of_is_told_from_the_file(write):
    """Each option changed alone: what changes with it in the system must be said to be its."""
    others = {
        SimulationOptions: {"tip_noise_mm": "1.5", "plant_intervals": "7", "seed": "5"},
        HardwareOptions: {
            "interface": "eth9", "station": "x.yaml", "state_directory": "x", "deadman": "none",
            "optitrack": "10.0.0.1", "optitrack_port": "7", "local": "10.0.0.2",
            "body": "x", "calibration": "x.yaml",
            "force_torque": "10.0.0.3", "force_torque_port": "7", "force_torque_http_port": "7",
            "mounting": "x.yaml", "force_torque_records_hz": "7", "force_torque_rate_hz": "7",
            "seed": "5",
        },
    }  # fmt: skip
    for kind, values in others.items():
        made = simulation if kind is SimulationOptions else hardware
        # of one plant: the noise of the tip is a number of this one alone
        usual = {"plant_errors": "same_structure"} if kind is SimulationOptions else {}
        plain = made("", **usual)
        for option, value in values.items():
            with_option = made("", **usual, **{option: value})
            for part in plain.parts:
                other = with_option.part(part.name).parameters
                changed = [name for name in other if other[name] != part.parameters.get(name)]
                for name in changed:
                    path = write({part.name: of({name: part.parameters[name]})})
                    system = made(path, **usual, **{option: value})
                    assert system.part(part.name).parameters[name] == other[name], (option, name)


def test_what_decides_the_run_is_chosen_for_all_nodes(write):
    path = write({"/**": of({"mode": "lockstep", "controller": "rod_mpc", "duration": 2.0})})
    system = simulation(path)
    assert [part.name for part in system.parts][-1] == "rod_mpc"
    assert system.simulated_time
    assert system.duration == 2.0
    assert {part.parameters["mode"] for part in system.parts} == {"lockstep"}
    assert not simulation(path, mode="wall").simulated_time
    arm = simulation(write({"/**": of({"robot": "dalenberg_robot1"})}))
    assert arm.controller == "apcc_controller"


def test_a_file_for_several_robots_reaches_each_in_its_namespace(write):
    path = write(
        {
            "robot1": {"estimator": of({"patience": 0.7}), "**": of({"frame_prefix": "left/"})},
            "/robot2/estimator": of({"patience": 0.8}),
            "/**": of({"seed": 4}),
        }
    )
    for namespace, patience, prefix in (("robot1", 0.7, "left/"), ("/robot2/", 0.8, None)):
        system = simulation(path, namespace=namespace)
        estimator = system.part("estimator").parameters
        assert (estimator["patience"], estimator["seed"]) == (patience, 4)
        assert {part.parameters.get("frame_prefix") for part in system.parts} == {prefix}


@pytest.mark.parametrize(
    ("sections", "of_visuals"),
    [
        ({}, "licher2025"),
        ({"/optitrack": of({"calibration": CALIBRATION})}, CALIBRATION),
        ({"/**": of({"calibration": CALIBRATION})}, CALIBRATION),
        (
            {
                "/optitrack": of({"calibration": CALIBRATION}),
                "/visuals": of({"calibration": "licher2025"}),
            },
            "licher2025",
        ),
    ],
)
def test_frames_have_the_base_that_the_cameras_calibration_tells(write, sections, of_visuals):
    system = hardware(write(sections))
    assert system.part("visuals").parameters["calibration"] == of_visuals
    given = hardware(write(sections), calibration=CALIBRATION)
    assert given.part("visuals").parameters["calibration"] == CALIBRATION


def test_the_emulated_bench_gets_the_prefix_of_frames_from_a_file(write):
    path = write({"/**": of({"frame_prefix": "left_"})})
    assert RehearsalOptions.of_options({"params_file": path, "namespace": "r"}).prefix == "left_"


def test_a_rehearsal_takes_a_file_too(write):
    options = RehearsalOptions.of_options(
        {"params_file": write({"/rod_mpc": of({"costs": {"tip_position": 2e4}})})}
    )
    system = system_with_file(hardware_system(options, Path("bag")), options, pytest.fail)
    assert system.part("rod_mpc").parameters["costs.tip_position"] == 2e4


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "node", "matches"),
    [
        ("/**", "/estimator", True),
        ("/**", "/robot1/estimator", True),
        ("**", "/estimator", True),
        ("/*", "/estimator", True),
        ("/*", "/robot1/estimator", False),
        ("/robot1/**", "/robot1/estimator", True),
        ("/robot1/**", "/robot2/estimator", False),
        ("/**/estimator", "/a/b/estimator", True),
        ("/**/estimator", "/estimator", True),
        ("/*/estimator", "/robot1/estimator", True),
        ("estimator", "/estimator", True),
        ("/estimator", "/robot1/estimator", False),
    ],
)
def test_names_match_as_in_ros(write, section, node, matches):
    file = ParameterFile.load(write({section: of({"patience": 0.7})}))
    assert bool(file.of(node)) == matches


def test_namespaces_may_be_nested_and_one_section_can_hold_both(write):
    content = {"robot1": {"estimator": of({"patience": 0.7}), "**": of({"seed": 3})}}
    file = ParameterFile.load(write(content))
    found = {name: each.value for name, each in file.of("/robot1/estimator").items()}
    assert found == {"patience": 0.7, "seed": 3}


def test_numbers_are_read_as_ros_reads_them(write):
    """1e4 is text to YAML 1.1, a number to rcl; a whole number stands for a number."""
    path = write("/nempc_controller: {ros__parameters: {costs: {tip_position: 1e4}, seed: 3}}")
    parameters = simulation(path).part("nempc_controller").parameters
    assert parameters["costs.tip_position"] == 1e4
    path = write("/optitrack: {ros__parameters: {limits: {fastest: 3}}}")
    assert effective(hardware(path).part("optitrack"))["limits.fastest"] == 3.0


# --- mistakes -----------------------------------------------------------------------------------


def test_unknown_names_are_told_once_and_ignored(write):
    warnings = []
    path = write(
        {
            "/**": of({"populaton": 64, "patience": 0.7, "seed": 2}),
            "/estimator": of({"patence": 0.8, "use_sim_time": True}),
            "/estimater": of({"patience": 0.9}),
            "/other_robot/estimator": of({"anything": 1}),
        }
    )
    system = simulation(path, warnings)
    assert len(warnings) == 2
    strangers, unknown = warnings
    assert "/estimater (did you mean /estimator?); /other_robot/estimator" in strangers
    assert "/**: populaton (did you mean population?)" in unknown
    assert "/estimator: patence (did you mean patience?)" in unknown
    assert "seed" not in unknown
    estimator = system.part("estimator").parameters
    assert estimator["patience"] == 0.7
    assert estimator["use_sim_time"] is True
    assert not {"populaton", "patence"} & estimator.keys()
    # a parameter of one node in a section for all is for that node alone
    assert "patience" not in system.part("recorder").parameters


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (
            {"/estimator": of({"patience": 99})},
            "params.yaml: /estimator: parameter patience = 99: must be a number from 0.1 to 5.0",
        ),
        (
            {"/**": of({"safety": {"operator_vent": "soon"}})},
            "params.yaml: /**: parameter safety.operator_vent = 'soon': must be a number above 0",
        ),
        (
            {"/valves": of({"safety": {"operator_vent": 0.1}})},
            "params.yaml: node valves: parameters safety: operator: ages",
        ),
        (
            {"/**": of({"robot": "nobody"})},
            "robot 'nobody': unknown; known are",
        ),
        (
            {"/**": of({"duration": 0.1})},
            "params.yaml: /**: parameter duration = 0.1: must be a number from 1.0 to 3600.0 s",
        ),
        ({"/estimator": {"patience": 1}}, "params.yaml: /estimator/patience: holds 1, must hold"),
        ({"/estimator": 3}, "params.yaml: /estimator: holds 3, must hold a mapping"),
        ({"/a b": of({})}, "params.yaml: '/a b': is not a name of nodes"),
        ({"/estimator": of([1])}, "params.yaml: /estimator: ros__parameters holds [1]"),
        (
            {"/estimator": of({"patience": None})},
            "params.yaml: /estimator: parameter patience = None: must be a boolean, a number",
        ),
        (
            {"/estimator": of({"parameters": [["a"]]})},
            "params.yaml: /estimator: parameter parameters = [['a']]: must be",
        ),
        ("[1, 2]", "params.yaml: holds a list, must hold a mapping"),
        ("a: [", "params.yaml: line 1: cannot be read as a ROS parameter file"),
        ("", "params.yaml: is empty"),
    ],
)
def test_a_mistake_is_one_line_with_the_place_the_value_and_what_is_allowed(write, content, line):
    with pytest.raises(UserError) as caught:
        hardware(write(content))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        hardware(str(tmp_path / "none.yaml"))
