"""The executor of nodes: a `System` as supervised processes that ROS 2 connects."""
