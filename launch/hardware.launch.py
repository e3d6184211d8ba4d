"""The closed loop on the bench: `ros2 launch softcr hardware.launch.py interface:=eth1`.

`--show-args` lists what can be chosen. Nodes, numbers and order: softcr_tools/hardware_system.py.
"""

from launch import LaunchDescription

from softcr_tools.launching import hardware_launch_description


def generate_launch_description() -> LaunchDescription:
    return hardware_launch_description()
