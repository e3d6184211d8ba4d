"""What an operator asks of running nodes where no `ros2` command is installed.

ROS 2 comes to most machines of softcr as Python wheels, and `ros2` is in none of them. These
commands are a thin layer on rclpy for what the documentation needs. Each is a command of `softcr`
itself.
"""

COMMANDS = {
    "run": ("ros.run:run", "start one node by itself"),
    "nodes": ("ros.nodes:nodes", "list the running nodes and their lifecycle states"),
    "lifecycle": ("ros.lifecycle:app", "show or change the lifecycle state of a node"),
    "topics": ("ros.topics:topics", "list topics with publishers, subscribers and rates"),
    "echo": ("ros.echo:echo", "print the messages of a topic"),
    "call": ("ros.call:call", "call a service of a node"),
    "goal": ("ros.goal:goal", "send the tip to a pose or along a path, and wait"),
    "param": ("ros.param:app", "list, show or change the parameters of a node"),
}
"""Name -> place below the package, and the line in a list."""
