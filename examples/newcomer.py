"""A first look at a running robot, in plain rclpy. Beside `softcr up simulation --reference goal`:
python examples/newcomer.py results/sim/latest     (a recorded run, which is replayed at the end)"""

import subprocess
import sys
import time

import rclpy
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from rclpy.wait_for_message import wait_for_message
from std_srvs.srv import Trigger

SOFTCR = [sys.executable, "-m", "softcr_tools.cli"]


def ask(kind, service, **request):
    client = node.create_client(kind, service)
    assert client.wait_for_service(120.0), f"{service} is not there"
    time.sleep(1.0)  # until the service knows this client, too
    rclpy.spin_until_future_complete(node, answer := client.call_async(kind.Request(**request)))
    return answer.result()


def tell(service, name, value):
    parameters = [Parameter(name, value=value).to_parameter_msg()]
    return ask(SetParametersAtomically, service, parameters=parameters).result


rclpy.init()
node = rclpy.create_node("newcomer")
goals = node.create_publisher(PoseStamped, "goal/pose", 1)
time.sleep(4.0)  # until it knows the others
print("nodes:", ", ".join(sorted(node.get_node_names())))
print("topics:", ", ".join(sorted(name for name, _ in node.get_topic_names_and_types())))
goal = PoseStamped()
goal.header.stamp = node.get_clock().now().to_msg()
goal.pose.position.x, goal.pose.position.y, goal.pose.position.z = 0.02, 0.01, 0.17
goals.publish(goal)
print("goal:", ask(Trigger, "goal/go").message)
time.sleep(4.0)
tip = wait_for_message(PoseWithCovarianceStamped, node, "estimate/tip/pose")[1].pose.pose.position
print(f"tip: {tip.x:.3f} {tip.y:.3f} {tip.z:.3f}")
weight = tell("nempc_controller/set_parameters_atomically", "costs.input_rate", 0.3)
print("weight changed:", weight.successful)
print("switch:", tell("switch", "controller", "rod_mpc").reason, flush=True)
# the wheels of ROS lack tf2_msgs, which tf2_ros needs; this command does without
subprocess.run([*SOFTCR, "echo", "/tf", "--once"], check=True)
replayed, words = [], ["replay", sys.argv[1], "--online", "--namespace=again", "--wait=30"]
node.create_subscription(PoseWithCovarianceStamped, "again/estimate/tip/pose", replayed.append, 10)
estimator = subprocess.Popen([*SOFTCR, "run", "estimator", "--namespace=again", "--use-sim-time"])
for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
    ask(ChangeState, "again/estimator/change_state", transition=Transition(id=transition))
for _ in range(2):
    replaying = subprocess.Popen([*SOFTCR, *words])
    while replaying.poll() is None:
        rclpy.spin_once(node, timeout_sec=0.1)
    print(f"replay: {len(replayed)} estimates until now")
estimator.terminate()
estimator.wait()
