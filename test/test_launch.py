"""launch/simulation.launch.py with the real launch_ros, where that is installed."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS 2 installation only")

from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction
from launch_ros.actions import LifecycleNode
from launch_ros.events.lifecycle import ChangeState

from softcr_models.errors import UserError
from softcr_tools.hardware_system import HardwareOptions
from softcr_tools.systems import (
    SimulationOptions,
    simulation_options,
    simulation_system,
)

FILE = Path(__file__).parents[1] / "launch" / "simulation.launch.py"


@pytest.fixture
def description():
    spec = importlib.util.spec_from_file_location("simulation_launch", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


def expanded(description, **chosen):
    """What a launch with these arguments would start."""
    context = LaunchContext()
    context.launch_configurations.update(chosen)
    entities = []
    for entity in description.entities:
        if isinstance(entity, DeclareLaunchArgument):
            entity.execute(context)
        elif isinstance(entity, OpaqueFunction):
            entities += entity.execute(context)
    return entities


def test_its_arguments_are_the_options_of_softcr_up(description):
    arguments = {argument.name: argument for argument in description.get_launch_arguments()}
    assert set(arguments) == {*SimulationOptions.model_fields, "results"}
    context = LaunchContext()
    texts = {
        name: "".join(part.perform(context) for part in arguments[name].default_value)
        for name in SimulationOptions.model_fields
    }
    assert simulation_options(texts) == SimulationOptions()


def test_it_starts_the_nodes_of_the_system_and_configures_the_first(description, tmp_path):
    entities = expanded(description, results=str(tmp_path), population="64")
    nodes = [entity for entity in entities if isinstance(entity, LifecycleNode)]
    system = simulation_system(simulation_options({"population": "64"}), Path("bag"))
    assert [node.node_executable for node in nodes] == [node.name for node in system.nodes]
    assert {node.node_package for node in nodes} == {"softcr"}
    (first,) = [entity.event for entity in entities if isinstance(entity, EmitEvent)]
    assert isinstance(first, ChangeState)
    assert [first.lifecycle_node_matcher(node) for node in nodes] == [True] + 4 * [False]
    assert (tmp_path / "latest").is_dir()


def test_a_wrong_argument_is_told_in_one_line_and_starts_nothing(description, tmp_path):
    with pytest.raises(UserError, match="population = 3: must be a whole number from 8"):
        expanded(description, results=str(tmp_path), population="3")
    assert list(tmp_path.iterdir()) == []


def test_the_hardware_file_offers_every_option_of_its_system():
    path = FILE.with_name("hardware.launch.py")
    spec = importlib.util.spec_from_file_location("hardware_launch", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    arguments = module.generate_launch_description().get_launch_arguments()
    assert {argument.name for argument in arguments} >= set(HardwareOptions.model_fields)
