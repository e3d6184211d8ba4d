"""The closed loop on the bench: `ros2 launch softcr hardware.launch.py interface:=eth1`.

`--show-args` lists what can be chosen: the options of `softcr up hardware`, which it runs.
"""

from launch import LaunchDescription

from softcr_tools.running.hardware_system import HardwareOptions
from softcr_tools.running.launching import launch_description


def generate_launch_description() -> LaunchDescription:
    return launch_description("hardware", HardwareOptions, "results/hardware")
