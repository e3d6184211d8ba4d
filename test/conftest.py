"""What all tests share. ROS stays on this machine, in a domain of its own."""

import os
import random

os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
# tests kill processes, which leave their segments in shared memory behind
os.environ["FASTDDS_BUILTIN_TRANSPORTS"] = "UDPv4"
os.environ.setdefault("ROS_DOMAIN_ID", str(random.SystemRandom().randint(1, 100)))
