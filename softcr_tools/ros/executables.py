"""The nodes of the package by name. setup.py reads this file alone, so it imports nothing."""

_BLOCK = "softcr_runtime.ros.run_block"
NODES = {
    "simulator": f"{_BLOCK} softcr_simulation.simulator:Simulator",
    "valves": "softcr_hardware.nodes.valves",
    "optitrack": "softcr_hardware.nodes.optitrack",
    "force_torque": "softcr_hardware.nodes.force_torque",
    "estimator": f"{_BLOCK} softcr_estimation.estimator:EstimatorBlock",
    "cc_estimator": f"{_BLOCK} softcr_papers.mehl2024.cc_block:CcEstimatorBlock",
    "reference": f"{_BLOCK} softcr_control.reference.block:ReferenceBlock",
    "goal": f"{_BLOCK} softcr_control.goals.block:GoalReference",
    "controller": f"{_BLOCK} softcr_control.controller:ControllerBlock",
    "nempc_controller": f"{_BLOCK} softcr_control.controller:ControllerBlock nempc_controller",
    "rod_mpc": f"{_BLOCK} softcr_control.controller:ControllerBlock rod_mpc"
    " --ros-args -p controller:=rod_mpc --",
    "strain_regulator": f"{_BLOCK} softcr_control.controller:ControllerBlock strain_regulator"
    " --ros-args -p controller:=strain_regulator -p robot:=pcs_two_segments -p rate_hz:=200.0 --",
    "policy": f"{_BLOCK} softcr_control.controller:ControllerBlock policy"
    " --ros-args -p controller:=policy --",
    "feedforward": f"{_BLOCK} softcr_control.open_loop.feedforward:Feedforward",
    "apcc_controller": f"{_BLOCK} softcr_papers.dalenberg2024.apcc.block:ApccBlock",
    "tip_reference": f"{_BLOCK} softcr_papers.dalenberg2024.tip_block:TipReferenceBlock",
    "visuals": "softcr_tools.nodes.visuals",
    "recorder": "softcr_runtime.bags.recorder_node",
}
"""Name, for `softcr run NAME` and `ros2 run softcr NAME` -> what follows `python -m`."""
