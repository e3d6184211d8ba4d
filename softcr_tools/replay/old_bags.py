"""Nodes of bags that were recorded before nodes said which block they run."""

from collections.abc import Mapping
from typing import Any

_CONTROLLER = "softcr_control.controller:ControllerBlock"
BLOCKS: dict[str, str] = {
    "estimator": "softcr_estimation.estimator:EstimatorBlock",
    "cc_estimator": "softcr_estimation.cc_block:CcEstimatorBlock",
    "nempc_controller": _CONTROLLER,
    "rod_mpc": _CONTROLLER,
    "feedforward": "softcr_control.feedforward:Feedforward",
    "apcc_controller": "softcr_control.apcc.block:ApccBlock",
}
"""What each node ran, by its name."""

_CONTROLLERS = {"nempc_controller": "nempc", "rod_mpc": "rod_mpc"}


def settings_today(node: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of such a node by today's names: `controller` was its file."""
    today = dict(values)
    if node in _CONTROLLERS:
        today["controller_file"] = today.pop("controller", _CONTROLLERS[node])
        today["controller"] = _CONTROLLERS[node]
    return today
