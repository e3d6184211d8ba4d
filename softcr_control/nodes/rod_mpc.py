"""The gradient MPC as a node: the loop of `nempc_controller` round another optimiser."""

import sys

from softcr_control.control_loop import RodMpcControllerSettings
from softcr_control.nodes.nempc_controller import PredictiveController
from softcr_runtime.process import run


class RodMpcController(PredictiveController):
    """Moves the rod along the reference by Gauss-Newton model-predictive control on the rod."""

    default_name = "rod_mpc"
    Settings = RodMpcControllerSettings


def main() -> int:
    """Entry point of `ros2 run softcr rod_mpc`."""
    return run(RodMpcController)


if __name__ == "__main__":
    sys.exit(main())
