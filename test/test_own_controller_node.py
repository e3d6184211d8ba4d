"""A node of somebody else commands the robot: systems without a controller, and one that runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from domains import fresh_domain
from kit.processes import ROOT

from softcr_models.errors import UserError
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.ros.executor.exchange import Wanted
from softcr_tools.running.exchanged_controller import other_controller
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

BAG, NONE = Path("nowhere"), {"controller": "none"}
SYSTEMS = {
    "simulation": lambda told: simulation_system(SimulationOptions.of_options(told), BAG),
    "hardware": lambda told: hardware_system(HardwareOptions.of_options(told), BAG),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_everything_but_the_controller_is_there(name):
    ours, others = SYSTEMS[name]({}), SYSTEMS[name](NONE)
    names, other_names = ({part.name for part in each.parts} for each in (ours, others))
    assert names - other_names == {"nempc_controller"}
    assert set(others.activation) == other_names
    if name == "hardware":  # on the bench the valves leave first and so vent
        assert others.controller == others.actuators == "valves"


def test_a_tip_alone_is_enough_and_the_reference_looks_as_far_ahead_as_it_is_told():
    SimulationOptions.of_options(
        {**NONE, "estimator": "examples/constant_velocity.py:ConstantVelocity"}
    )
    system = SYSTEMS["simulation"]({**NONE, "reference.horizon": "12"})
    assert system.part("reference").parameters["horizon"] == 12


def test_what_says_nothing_to_a_node_of_somebody_else_is_refused():
    for words, line in (
        ({"controller.population": "64"}, "option controller.population: has no meaning here"),
        ({"device": "auto"}, "device = 'auto': has no meaning for controller 'none'"),
        ({"robot": "dalenberg_robot1"}, "controller = 'none': has no meaning for robot"),
    ):
        with pytest.raises(UserError, match=line):
            SimulationOptions.of_options({**NONE, **words})
    options = SimulationOptions.of_options(NONE)
    system = simulation_system(options, BAG)
    made = other_controller(system, options, lambda each: simulation_system(each, BAG))
    with pytest.raises(UserError, match="a node that is not softcr's commands this run"):
        made(Wanted("rod_mpc"))


@pytest.mark.slow
def test_the_example_bends_the_tip_where_it_is_told(tmp_path):
    pytest.importorskip("rclpy")
    environment = {**os.environ, "ROS_DOMAIN_ID": fresh_domain()}
    words = [sys.executable, "examples/own_controller_node.py", "0.02", "-0.01"]
    own = subprocess.Popen(words, cwd=ROOT, env=environment)
    try:
        up = [sys.executable, "-m", "softcr_tools.cli", "up", "simulation", "--controller=none"]
        run = subprocess.run(
            [*up, "--duration=8", "--visuals=off", f"--results={tmp_path}"],
            cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert own.poll() is None
    finally:
        own.send_signal(signal.SIGINT)
        assert own.wait(10.0) == 0
    assert run.returncode == 0, run.stderr
    signals = read_signals(Bag(tmp_path / "latest" / "bag"))
    tip = signals.tip.values[-20:, :2].mean(axis=0)
    np.testing.assert_allclose(tip, [0.02, -0.01], atol=2e-3)
    answered = signals.role("commands").stamps
    assert len(answered) > 400
    assert set(answered) <= set(signals.signal("estimate/tip/pose", "position").stamps)
