"""A kind of robot that an installed package brings: files of its own, and none of softcr's."""

import json
import os
import subprocess
import sys

import pytest

from softcr_models import load_robot
from softcr_models.robots.kinds import KINDS
from softcr_runtime.bags.reading import Bag
from softcr_runtime.blocks.block import CLOCK
from softcr_runtime.wire.robot_topics import topics_of_robot
from softcr_runtime.wire.topics import TOPICS, topics_of
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.virtual_up import simulated

PACKAGE = '''
"""A mass on a spring that a force moves along z."""

from typing import ClassVar, Literal

import numpy as np

from softcr_models.arguments import Arguments, signs_of
from softcr_models.model_base import ModelBase
from softcr_models.model import TIP, Group, Inputs, Layout, OutputInfo, Parameter
from softcr_models.robots.kinds import ShownInput
from softcr_models.robots.parts import Data
from softcr_runtime.settings.registry import Entry
from softcr_simulation.model_plant import ModelPlant, ModelPlantSettings


class Slider(Data):
    type: Literal["slider"]
    name: str
    stiffness: float
    sees_tip: ClassVar = True
    in_world: ClassVar = False
    actuator_names: ClassVar = ("push",)
    shown_inputs: ClassVar = (ShownInput("push", "force", 1.0, "N", -5.0, 5.0),)
    bodies_seen: ClassVar = ()
    length: ClassVar = 0.2
    radius: ClassVar = 0.01
    base_orientation: ClassVar = (0.0, 0.0, 0.0)
    kernels: ClassVar = ()

    def tip_solver(self):
        return None

    def centre_line(self, state, parameters, points):
        poses = np.tile(np.eye(4), (points, 1, 1))
        poses[:, 2, 3] = np.linspace(0.0, self.length + state["position"][0], points)
        return poses


class SliderModel(ModelBase):
    state = Layout(
        (Group("position", np.array([0]), "m"), Group("rates", np.array([1]), "m/s")),
        np.array([0.05, 0.5]),
    )
    inputs = Inputs("force", ("push",), "N", np.array([-5.0]), np.array([5.0]), np.array([50.0]))

    def __init__(self, robot):
        self._length = robot.length
        stiff = robot.stiffness
        self.parameters = (Parameter("stiffness", "N/m", stiff, 0.2 * stiff, 5.0 * stiff),)
        self._tells({TIP: (OutputInfo((3, 4), "m", "pose"), self._tips)})

    @classmethod
    def of_robot(cls, robot):
        return cls(robot)

    def _states_after(self, states, levels, parameters, dt):
        count = max(len(states), len(levels))
        now, rows = np.broadcast_to(states, (count, 2)).copy(), []
        for begin, end in zip(levels[:, :-1, 0].T, levels[:, 1:, 0].T, strict=True):
            for part in (np.arange(20) + 0.5) / 20:
                force = begin + part * (end - begin) - parameters[:, 0] * now[:, 0]
                now[:, 1] += 0.05 * dt * (force - 2.0 * now[:, 1]) / 0.2
                now[:, 0] += 0.05 * dt * now[:, 1]
            rows.append(now.copy())
        return np.stack(rows, axis=1)

    def _tips(self, states, inputs, parameters):
        poses = np.tile(np.eye(3, 4), (*states.shape[:-1], 1, 1))
        poses[..., 2, 3] = self._length + states[..., 0]
        return poses

    def equilibrium(self, inputs, parameters):
        return np.array([inputs[0] / parameters[0], 0.0])

    def warm_up(self):
        pass


class SliderPlantSettings(ModelPlantSettings):
    plant_model: str = "slider"


class SliderPlant(ModelPlant):
    Settings = SliderPlantSettings


NAMES = {"plant": {"slider": Entry("sliders:SliderPlant", "a mass on a spring")}}
'''
KIND = """
from softcr_models.robots.kinds import Kind

SLIDER = Kind("a mass on a spring", "sliders:Slider", "push", "force [N]")
"""
ENTRIES = """
[softcr.kinds]
slider = slider_kind:SLIDER
[softcr.models]
slider = sliders:SliderModel
[softcr.names]
sliders = sliders:NAMES
"""


def run(folder, *words):
    """The command `softcr`, in a process that finds the package."""
    told = folder / "sliders-1.0.dist-info"
    if not told.is_dir():
        told.mkdir()
        (folder / "sliders.py").write_text(PACKAGE)
        (folder / "slider_kind.py").write_text(KIND)
        (told / "METADATA").write_text("Metadata-Version: 2.1\nName: sliders\nVersion: 1.0\n")
        (told / "entry_points.txt").write_text(ENTRIES)
        (folder / "mine.yaml").write_text("type: slider\nname: mine\nstiffness: 40.0\n")
    found = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "softcr_tools.cli", *words], capture_output=True, text=True,
        timeout=300, env=os.environ | {"PYTHONPATH": found},
    )  # fmt: skip


@pytest.mark.later
def test_a_kind_of_an_installed_package_runs_in_closed_loop(tmp_path):
    words = ["up", "simulation", "--robot", str(tmp_path / "mine.yaml"), "--mode", "virtual"]
    words += ["--duration", "4", "--controller", "rod_mpc", "--reference", "setpoint"]
    done = run(tmp_path, *words, "--results", str(tmp_path / "results"))
    assert done.returncode == 0, done.stdout + done.stderr
    (directory,) = (each for each in (tmp_path / "results").iterdir() if not each.is_symlink())
    summary = json.loads((directory / "summary.json").read_text())
    assert summary["robot"] == "mine"
    assert summary["tip_aed_settled_mm"] < 2.0
    assert summary["force"]["commanded_max_n"] <= 5.0
    assert summary["parameters"]["stiffness"]["estimated"] > 40.0  # the plant's is 5 % more
    topics = {name.strip("/") for name in Bag(directory / "bag").topics}
    assert {"push/plan", "push/state", "push/sent", "mocap/tip/pose", "estimate/state"} <= topics
    assert not topics & {"pressure/plan", "estimate/rod", "force_torque/wrench"}


def test_an_option_of_another_kind_is_refused_in_one_line(tmp_path):
    words = ["up", "simulation", "--robot", str(tmp_path / "mine.yaml")]
    done = run(tmp_path, *words, "--plant.errors", "payload_mass=0.1")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "option --plant.errors: unknown" in done.stderr


def test_topics_of_a_kind_are_those_of_its_robots_alone():
    """Every row of the table is some kind's, and none has the actuators of another one."""
    assert {name for kind in KINDS for name in topics_of(kind)} == set(TOPICS)
    for kind, told in KINDS.items():
        driven = {name.partition("/")[0] for name in topics_of(kind)} - {"tendon"}
        others = {each.quantity for each in KINDS.values()} - {told.quantity, "tendon"}
        assert not driven & others
    assert "force_torque/wrench" not in topics_of("strain")
    assert "tendon/plan" not in topics_of("rod")


@pytest.mark.parametrize(
    "name", ["licher2025", "tendon_arm", "two_segments", "pcs_two_segments", "dalenberg_robot1"]
)
def test_a_robot_has_the_topics_of_its_system_and_none_of_sensors_that_it_lacks(name):
    """What the recorder hears; the blocks of a run say what there must be."""
    robot = load_robot(name, tuple(KINDS))
    found = topics_of_robot(robot)
    options = SimulationOptions.of_options({"robot": name, "mode": "virtual"})
    for block in simulated(options).blocks.values():
        heard = {each.topic for each in block.inputs} - {CLOCK}
        assert {*block.outputs, *heard} - {"/clock"} <= found.keys(), block.name
    assert ("mocap/body/poses" in found) == bool(robot.bodies_seen)
    assert "tendon/lengths" not in found
    assert found.keys() < topics_of(robot.type).keys() < TOPICS.keys()
