"""Systems as data: options, parameters that the nodes accept, order."""

import importlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.refusals import one_line

from softcr_models import devices, load_robot
from softcr_models.errors import UserError
from softcr_models.plugins import load_class
from softcr_runtime.blocks.system import Part, System
from softcr_runtime.settings.node_settings import build_settings, declared_settings
from softcr_tools.running import option_checks
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system
from softcr_tools.running.option_checks import where_it_computes
from softcr_tools.running.roles import flat
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.simulation_defaults import changes_the_plant
from softcr_tools.running.systems import simulation_system

BAG = Path("somewhere/bag")


def system_of(**texts):
    return simulation_system(SimulationOptions.of_options(texts), BAG)


def parameters_of(system, name):
    return system.part(name).parameters


def names_of(system):
    return [part.name for part in system.parts]


@pytest.mark.parametrize(("texts", "line"), [
    ({"controller.seed": "64"}, "option controller.seed = '64': unknown"),
    ({"controller.device": "cpu"}, "option controller.device = 'cpu': unknown"),
    ({"robot": "dalenberg_robot1", "device": "auto"},
     "device = 'auto': has no meaning for robot 'dalenberg_robot1', an arm driven by"),
    ({"plant.errors": "payload_mass=99"}, "plant errors: payload_mass: "),
    ({"robot": "dalenberg_robot1", "plant.loads": "tip_pull"},
     "option plant.loads = 'tip_pull': unknown; did you mean plant.payload? known are"),
    ({"robot": "dalenberg_robot1", "estimator.model": "rod"}, "this run has no estimator"),
    ({"plant": "model", "plant.loads": "tip_pull"}, "option plant.loads = 'tip_pull': unknown; "),
    ({"plant.loads": "tip_pull", "plant.plant_errors": "hard"},
     "options plant: loads = 'tip_pull': has no meaning with plant_errors = 'hard'"),
    ({"robot": "dalenberg_robot1", "reference": "circle"},
     "must be one of setpoint, trajectory, tip_circle, file"),
    ({"estimator": "cc", "controller": "rod_mpc"}, "has no meaning for estimator cc"),
    ({"estimator": "cc", "reference": "tip_circle"}, "in open loop one that is made of"),
    ({"reference": "file"}, "a file goes with reference 'file'"),
    ({"reference.file": "x.csv"}, "a file goes with reference 'file'"),
    ({"controller.intervals": 4}, "reference.intervals = 5: they exchange states of one rod"),
    ({"controller.model": "constant_curvature"},
     "with estimator.model = 'rod': the controller gets states"),
    ({"reference": "file", "reference.file": "x.csv"}, "'x.csv': no such file"),
    ({"device": "gpu"}, "device = 'gpu': did you mean cpu? must be one of auto, cpu, cuda"),
    ({"device": "cuda", "controller": "none"}, "has no meaning for controller 'none'"),
    ({"device": "auto", "estimator": "cc"}, "device = 'auto': has no meaning for estimator cc"),
    ({"device": "cuda", "robot": "pcs_two_segments"}, "device = 'cuda': has no meaning for"),
    ({"device": "auto", "controller.model": "strain", "estimator.model": "strain"},
     "device = 'auto' with model 'strain': which computes on the processor alone"),
])  # fmt: skip
def test_a_wrong_option_is_one_line_with_name_value_and_what_is_allowed(texts, line):
    with one_line(says=line):
        SimulationOptions.of_options(texts)


def written(options):
    """Options by name as texts, those of roles by `role.name`."""
    values = options.model_dump(exclude={"virtual"})
    return {name: str(value) for name, value in (values | flat(values.pop("roles"))).items()}


@pytest.mark.parametrize(
    ("texts", "robot", "errors"),
    [
        ({}, "licher2025_chain", "typical"),
        ({"controller": "rod_mpc"}, "licher2025_chain", "typical"),
        ({"controller": "ilqr"}, "licher2025", "typical"),
        ({"controller": "none"}, "licher2025", "typical"),
        ({"controller.model": "ddpinn", "estimator.model": "ddpinn"}, "licher2025", "typical"),
        ({"plant.loads": "tip_pull"}, "licher2025_chain", "same_structure"),
        ({"plant.errors": "payload_mass=0.02"}, "licher2025_chain", "typical"),
        ({"plant.plant_errors": "same_structure"}, "licher2025_chain", "same_structure"),
        ({"estimator": "cc"}, "licher2025", "same_structure"),
        ({"robot": "licher2025"}, "licher2025", "typical"),
        ({"robot": "two_segments"}, "two_segments", "same_structure"),
        ({"robot": "tendon_arm"}, "tendon_arm", "same_structure"),
        ({"robot": "four_chambers"}, "four_chambers", "same_structure"),
        ({"robot": "dalenberg_robot1"}, "dalenberg_robot1", ""),
        ({"plant": "model"}, "licher2025", ""),
    ],
)
def test_the_headline_is_a_plant_that_is_not_the_model(texts, robot, errors):
    options = SimulationOptions.of_options(texts)
    assert (options.robot, options.of("plant").get("plant_errors", "")) == (robot, errors)
    assert SimulationOptions.of_options(written(options)) == options


def settings_of(part):
    """Validated settings of a part, as its node or block will have them."""
    if part.is_block:
        return load_class(part.runs, "block").settings_of(part.parameters)
    module = importlib.import_module(part.runs)
    kinds = [kind for kind in vars(module).values() if getattr(kind, "__module__", "") == part.runs]
    (node_class,) = [kind for kind in kinds if getattr(kind, "default_name", "") == part.name]
    assert callable(module.main)
    return build_settings(node_class.Settings, part.parameters)


@pytest.mark.parametrize("mode", ["wall", "lockstep"])
@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"robot": "dalenberg_robot1", "plant.payload": "0.5"},
        {"estimator": "cc"},
        {"robot": "two_segments", "plant.loads": "tip_pull", "plant.obstacles": "ball"},
    ],
)
def test_every_part_accepts_its_parameters(mode, chosen):
    pytest.importorskip("rclpy")
    for part in system_of(mode=mode, seed="7", **chosen).parts:
        assert settings_of(part).mode == mode


def hardware_of(**texts):
    return hardware_system(HardwareOptions.of_options(texts), BAG)


def test_parts_of_the_bench_accept_their_parameters_and_sample_separately():
    pytest.importorskip("rclpy")
    system = hardware_of(seed="7", **{"valves.interface": "bench0", "optitrack.multicast": "true"})
    for part in system.parts:
        settings = settings_of(part)
        if hasattr(settings, "sampling"):
            assert settings.resampled
    assert parameters_of(system, "optitrack")["multicast"]
    assert parameters_of(system, "valves")["interface"] == "bench0"


def test_on_the_bench_valves_come_last_and_nobody_moves_before_they_are_enabled():
    system = hardware_of()
    names = names_of(system)
    assert (names[0], names[-1]) == ("recorder", "valves")
    assert system.begin == ("valves/enable", "reference/start")
    assert parameters_of(system, "reference")["start"] == "service"
    for device in ("optitrack", "force_torque"):  # somebody else's has no node of ours
        assert {*names} - {*names_of(hardware_of(**{device: "none"}))} == {device}


def test_the_bench_is_for_rods():
    with pytest.raises(UserError, match="is an arm driven by tendons, must be a rod"):
        hardware_of(robot="dalenberg_robot1")


def test_an_arm_gets_its_own_nodes_and_an_arc_an_open_loop():
    names = names_of(system_of(robot="dalenberg_robot2"))
    assert names == ["recorder", "simulator", "tip_reference", "apcc_controller"]
    names = names_of(system_of(estimator="cc"))
    assert names == ["recorder", "simulator", "cc_estimator", "reference", "feedforward"]


def test_only_an_explicit_word_takes_the_deadman_s_switch_away():
    def required(**texts):
        return settings_of(hardware_of(**texts).part("valves")).safety.require_operator

    assert required()
    name = "valves.safety.require_operator"
    assert not required(**{name: "false"})
    with pytest.raises(UserError, match=f"option {name} = '': must be true or false"):
        hardware_of(**{name: ""})


@pytest.mark.parametrize("end", ["low", "high"])
def test_an_option_at_its_limit_is_within_the_limits_of_the_parts(end):
    limit = getattr(declared_settings(SimulationOptions)["duration"], end)
    system = system_of(duration=str(limit), mode="lockstep")
    for name in ("simulator", "reference", "nempc_controller"):
        settings_of(system.part(name))


@pytest.mark.parametrize("model", ["rod", "ddpinn", "constant_curvature"])
def test_what_a_controller_listens_to_is_told_by_others(model):
    models = {"controller.model": model, "estimator.model": model}
    system = system_of(controller="rod_mpc", mode="lockstep", **models)
    made = {}
    for name in ("estimator", "reference", "rod_mpc"):
        part = system.part(name)
        made[name] = load_class(part.runs, "block")(load_robot("licher2025"), settings_of(part))
    told = {*made["estimator"].outputs, *made["reference"].outputs}
    assert {each.topic for each in made["rod_mpc"].inputs} <= told


@pytest.mark.parametrize("options", [SimulationOptions, HardwareOptions])
def test_a_gpu_that_is_not_here_is_told_before_anything_starts(monkeypatch, options):
    monkeypatch.setattr(devices, "_driver_lacks", lambda: "no NVIDIA driver")
    for texts in ({"device": "cuda"}, {"estimator.device": "cuda"}):
        with pytest.raises(UserError, match=r"^device: 'cuda' cannot be used here: no NVIDIA"):
            options.of_options(texts)
    left_to_us = options.of_options({"device": "auto"})
    assert where_it_computes(left_to_us) == "the processor: no NVIDIA driver"
    assert not where_it_computes(options.of_options({}))


def test_a_rod_that_is_none_for_a_gpu_is_told_before_anything_starts(monkeypatch, tmp_path):
    monkeypatch.setattr(devices, "what_cuda_lacks", lambda library: "")
    monkeypatch.setattr(option_checks, "what_cuda_lacks", lambda library: "")
    monkeypatch.setattr(option_checks, "gpu_name", lambda: "a GPU")
    robot = tmp_path / "diver.yaml"
    medium = "medium: {density: 1000.0, normal_drag: 1.0}"
    robot.write_text(f"builds_on: licher2025\nname: diver\n{medium}\n")
    in_water = {"robot": str(robot)}
    with pytest.raises(UserError, match=r"^device = 'cuda': robot diver: the rod on a GPU knows"):
        SimulationOptions.of_options({"device": "cuda", **in_water})
    told = where_it_computes(SimulationOptions.of_options({"device": "auto", **in_water}))
    assert told.startswith("the processor: robot diver: ")
    assert where_it_computes(SimulationOptions.of_options({"device": "auto"})) == "a GPU"


@pytest.mark.parametrize("model", ["rod", "ddpinn"])
def test_a_gpu_is_for_the_controller_and_for_a_filter_that_asks(monkeypatch, model):
    monkeypatch.setattr(devices, "what_cuda_lacks", lambda library: "")
    for asked in ("cuda", "auto"):
        system = system_of(device=asked, **{"controller.model": model})
        assert settings_of(system.part("nempc_controller")).device == asked
        assert settings_of(system.part("estimator")).device == "cpu"
    filtered = system_of(**{"estimator.device": "cuda"})
    assert settings_of(filtered.part("estimator")).device == "cuda"
    assert settings_of(filtered.part("nempc_controller")).device == "cpu"


def test_the_recorder_frames_the_run_and_parts_share_a_process_if_told():
    system = system_of()
    names = names_of(system)
    assert (names[0], names[-1]) == ("recorder", system.controller)
    assert (system.activation[0], system.activation[-1]) == ("recorder", "simulator")
    assert set(system.processes) == {*names}
    shared = system_of(processes="one").processes
    assert [part.name for part in shared["loop"]] == names[1:]
    assert set(shared) == {"recorder", "loop"}


def test_only_in_lockstep_the_plant_ends_the_run():
    assert "duration" not in parameters_of(system_of(duration="7"), "simulator")
    system = system_of(duration="7", mode="lockstep")
    assert parameters_of(system, "simulator")["duration"] == 7.0
    assert system.simulated_time


@given(st.permutations(["a", "b", "c"]), st.sampled_from(["a", "d", ""]))
def test_a_system_names_exactly_its_parts(activation, controller):
    parts = tuple(Part(name, f"package.{name}") for name in "abc")
    if controller == "a":
        System("s", parts, tuple(activation), 1.0, False, controller)
    else:
        with pytest.raises(ValueError, match="must name its parts"):
            System("s", parts, tuple(activation), 1.0, False, controller)
    with pytest.raises(ValueError, match="must name its parts"):
        System("s", parts, tuple(activation[:2]), 1.0, False, "a")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ""),
        ({"plant.errors": "payload_mass=0.05"}, ""),
        (
            {"plant.loads": "tip_pull", "plant.obstacles": "ball"},
            "--plant.loads, --plant.obstacles: the plant is same_structure",
        ),
        ({"robot": "tendon_arm", "plant.loads": "tip_pull"}, ""),  # which has no other plant
    ],
)
def test_an_option_that_makes_the_plant_another_one_says_so(given, told):
    line = changes_the_plant(SimulationOptions.of_options(given))
    assert line.startswith(told)
    assert bool(line) == bool(told)
