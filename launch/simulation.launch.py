"""The closed loop in simulation: `ros2 launch softcr simulation.launch.py duration:=60`.

`--show-args` lists what can be chosen. Nodes, numbers and order: softcr_tools/systems.py.
"""

from launch import LaunchDescription

from softcr_tools.launching import simulation_launch_description


def generate_launch_description() -> LaunchDescription:
    return simulation_launch_description()
