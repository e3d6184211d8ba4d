"""The nodes of the package by name. setup.py runs this file, so it imports nothing of softcr."""

from importlib.metadata import entry_points

_BLOCK = "softcr_runtime.ros.run_block"
NODES = {
    "simulator": f"{_BLOCK} softcr_simulation.simulator:Simulator",
    "valves": "softcr_hardware.nodes.valves",
    "optitrack": "softcr_hardware.nodes.optitrack",
    "force_torque": "softcr_hardware.nodes.force_torque",
    "estimator": f"{_BLOCK} softcr_estimation.estimator:EstimatorBlock",
    "reference": f"{_BLOCK} softcr_control.reference.block:ReferenceBlock",
    "goal": f"{_BLOCK} softcr_control.goals.block:GoalReference",
    "controller": f"{_BLOCK} softcr_control.controller:ControllerBlock",
    "nempc_controller": f"{_BLOCK} softcr_control.controller:ControllerBlock nempc_controller",
    "rod_mpc": f"{_BLOCK} softcr_control.controller:ControllerBlock rod_mpc"
    " --ros-args -p controller:=rod_mpc --",
    "feedforward": f"{_BLOCK} softcr_control.open_loop.feedforward:Feedforward",
    "visuals": "softcr_tools.nodes.visuals",
    "recorder": "softcr_runtime.bags.recorder_node",
}
"""Name, for `softcr run NAME` and `ros2 run softcr NAME` -> what follows `python -m`."""

for _point in sorted(entry_points(group="softcr.nodes"), key=lambda point: point.name):
    NODES |= {name: module for name, module in _point.load().items() if name not in NODES}
