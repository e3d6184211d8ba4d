"""ROS 2 nodes: thin shells around the plain modules beside them."""
