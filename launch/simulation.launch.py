"""The closed loop in simulation: `ros2 launch softcr simulation.launch.py duration:=60`.

`--show-args` lists what can be chosen: the options of `softcr up simulation`, which it runs.
"""

from launch import LaunchDescription

from softcr_tools.running.launching import launch_description
from softcr_tools.running.run_options import SimulationOptions


def generate_launch_description() -> LaunchDescription:
    return launch_description("simulation", SimulationOptions, "results/sim")
