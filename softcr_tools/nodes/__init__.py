"""ROS 2 nodes: thin shells around the plain modules of the tools."""
