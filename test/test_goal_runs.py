"""Robots that are sent to goals in closed loop: arms on virtual time, both kinds as processes."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kit.simulations import simulation_up

from softcr_control.goals.block import POSE
from softcr_models import load_robot
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.blocks.block import BlockBase, Input, Output
from softcr_runtime.blocks.system import Part
from softcr_runtime.blocks.values import Goal
from softcr_runtime.blocks.virtual import block_of
from softcr_runtime.blocks.virtual_run import run_system
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

ARMS = ("dalenberg_robot1", "dalenberg_robot2")
OF_ARM = {
    "reference": "goal", "reference.speed": "0.2", "reference.tolerance": "5e-3",
    "reference.spacing": "0.05",
}  # fmt: skip
NEAR = (0.03, 0.02, 0.165)  # of licher2025 [m]


def bent(robot):
    """(3,) where an arm's tip is with all sections bent alike, and its length [m]."""
    arm = load_robot(robot, ("arm",))
    reach = arm.tip_solver()
    return reach.tip(np.tile([0.2, 0.1], len(arm.model_lengths))), arm.model_lengths.sum()


class Person(BlockBase):
    """Somebody who publishes a goal and, three frames later, asks for it."""

    kinds = ("arm",)
    inputs = (Input("mocap/body/poses", "lead"),)
    outputs = (POSE,)
    frames, goal, ask = 0, np.zeros(3), None

    def tick(self, now, samples):
        self.frames += 1
        if self.frames == 50:
            yield Output(POSE, now, Goal(self.goal[None], "world"))
        if self.frames == 53:
            self.ask("go")


@pytest.mark.parametrize("robot", ARMS)
def test_an_arm_goes_where_it_is_sent(robot):
    words = {"robot": robot, "mode": "lockstep", "duration": "10", **OF_ARM}
    system = simulation_system(SimulationOptions.of_options(words), Path("nowhere"))
    person = Person(load_robot(robot, ("arm",)), NodeSettings(robot=robot, mode="lockstep"))
    person.goal, length = bent(robot)

    def made(part):
        if part.name == "person":
            return person
        block = block_of(part)
        if part.name == "goal":
            person.ask = block.act
        return block

    parts = (*system.parts, Part("person", "test_goal_runs:Person"))
    system = replace(system, parts=parts, activation=tuple(part.name for part in parts))
    sent = []
    executor = run_system(system, lambda _, output: sent.append(output), make=made)
    assert executor.complaints == []
    states = [each.value for each in sent if each.topic == "goal/state"]
    assert [each.state for each in (states[0], states[-1])] == ["idle", "idle"]
    assert "moving" in {each.state for each in states}
    assert states[-1].message == "arrived"
    tips = [each.value.position for each in sent if each.topic == "simulation/truth/tip/pose"]
    assert np.linalg.norm(tips[40] - person.goal) > 0.1
    # what A-PCC leaves at a setpoint; the plant's model is another one than the controller's
    assert np.linalg.norm(np.mean(tips[-20:], axis=0) - person.goal) < 0.01 * length


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["licher2025", "dalenberg_robot1"])
def test_in_lock_step_processes_a_person_sends_the_tip(robot, tmp_path):
    """Simulated time runs as fast as it can meanwhile."""
    pytest.importorskip("rclpy")
    chosen = OF_ARM if robot in ARMS else {"reference": "goal", "controller": "rod_mpc"}
    goal = bent(robot)[0] if robot in ARMS else np.array(NEAR)
    chosen = {**chosen, "robot": robot, "mode": "lockstep", "duration": "3600"}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in chosen.items()]
    with simulation_up(tmp_path, *words) as said:
        sent = said("goal", *(f"{each:.6g}" for each in goal), "--timeout=30")
        time.sleep(3.0)
    assert sent.returncode == 0, sent
    assert sent.stdout.splitlines()[-1] == "arrived"
    tip = read_signals(Bag(tmp_path / "latest" / "bag")).tip.values[-20:].mean(axis=0)
    assert np.linalg.norm(tip - goal) < (8e-3 if robot in ARMS else 1e-3)
