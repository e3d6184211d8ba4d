"""A controller that is a node of its own, in plain rclpy: it bends the tip to a place and holds it.

    softcr up simulation --controller none --duration 10 &
    python examples/own_controller_node.py 0.02 -0.01

It hears the estimated tip and answers each estimate with pressures: the push that the place needs,
and more of it for as long as the tip stands beside it. Chamber i stands at the angle a_i around the
rod and pushes the tip away from itself.
"""

import math
import sys
from contextlib import suppress

import rclpy
from geometry_msgs.msg import PoseWithCovarianceStamped
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState

CHAMBERS = {"chamber_1": 0.0, "chamber_2": 2 * math.pi / 3, "chamber_3": 4 * math.pi / 3}  # [rad]
MEAN, HIGHEST = 30e3, 60e3  # [Pa]
STIFFNESS, GAIN = 3e5, 5e5  # push that holds a tip [Pa/m], and that grows beside it [Pa/(m s)]
PERIOD = 1 / 70  # of estimates [s]


class OwnController(Node):
    def __init__(self, goal):
        super().__init__("own_controller")
        self.goal, self.sum = goal, [0.0, 0.0]
        self.commands = self.create_publisher(JointState, "pressure/command", 1)
        self.create_subscription(PoseWithCovarianceStamped, "estimate/tip/pose", self.answer, 1)

    def answer(self, estimate):
        tip = estimate.pose.pose.position
        errors = self.goal[0] - tip.x, self.goal[1] - tip.y
        self.sum = [s + PERIOD * e for s, e in zip(self.sum, errors, strict=True)]
        x, y = (STIFFNESS * g + GAIN * s for g, s in zip(self.goal, self.sum, strict=True))
        pushes = (-2 / 3 * (x * math.cos(a) + y * math.sin(a)) for a in CHAMBERS.values())
        command = JointState(name=list(CHAMBERS))
        command.header.stamp = estimate.header.stamp  # of the estimate that it answers
        command.effort = [min(max(MEAN + push, 0.0), HIGHEST) for push in pushes]
        self.commands.publish(command)


rclpy.init()
with suppress(KeyboardInterrupt, ExternalShutdownException):
    rclpy.spin(OwnController([float(word) for word in sys.argv[1:3]]))
