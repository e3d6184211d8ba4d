"""The papers' nodes by name; setup.py runs this file, so it imports nothing."""

_BLOCK = "softcr_runtime.ros.run_block"
NODES = {
    "cc_estimator": f"{_BLOCK} softcr_papers.mehl2024.cc_block:CcEstimatorBlock",
    "strain_regulator": f"{_BLOCK} softcr_control.controller:ControllerBlock strain_regulator"
    " --ros-args -p controller:=strain_regulator -p robot:=pcs_two_segments -p rate_hz:=200.0 --",
    "policy": f"{_BLOCK} softcr_control.controller:ControllerBlock policy"
    " --ros-args -p controller:=policy --",
    "apcc_controller": f"{_BLOCK} softcr_papers.dalenberg2024.apcc.block:ApccBlock",
    "tip_reference": f"{_BLOCK} softcr_papers.dalenberg2024.tip_block:TipReferenceBlock",
}
