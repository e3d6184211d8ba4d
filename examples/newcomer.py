"""A first look at a running robot, in plain rclpy. Beside `softcr up simulation --reference goal`:

python examples/newcomer.py results/sim/latest     (a recorded run, which is replayed at the end)
"""

import subprocess
import sys
import threading
import time

import rclpy
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

SOFTCR = [sys.executable, "-m", "softcr_tools.cli"]


def ask(kind, service, **request):
    """The answer of a service."""
    client = node.create_client(kind, service)
    assert client.wait_for_service(120.0), f"{service} is not there"
    time.sleep(1.0)  # until the service knows this client, too
    return client.call(kind.Request(**request))


def told(service, name, value):
    """What a service says that is told one parameter."""
    parameters = [Parameter(name, value=value).to_parameter_msg()]
    return ask(SetParametersAtomically, service, parameters=parameters).result


rclpy.init()
node = rclpy.create_node("newcomer")
tips, replayed = [], []
node.create_subscription(PoseWithCovarianceStamped, "estimate/tip/pose", tips.append, 10)
node.create_subscription(PoseWithCovarianceStamped, "again/estimate/tip/pose", replayed.append, 10)
goals = node.create_publisher(PoseStamped, "goal/pose", 1)
executor = SingleThreadedExecutor()
executor.add_node(node)
spinning = threading.Thread(target=executor.spin, daemon=True)
spinning.start()
time.sleep(4.0)
print("nodes:", ", ".join(sorted(node.get_node_names())))
print("topics:", ", ".join(sorted(name for name, _ in node.get_topic_names_and_types())))

goal = PoseStamped()
goal.header.stamp = node.get_clock().now().to_msg()
goal.pose.position.x, goal.pose.position.y, goal.pose.position.z = 0.02, 0.01, 0.17
goals.publish(goal)
print("goal:", ask(Trigger, "goal/go").message)
time.sleep(4.0)
tip = tips[-1].pose.pose.position
print(f"tip: {tip.x:.3f} {tip.y:.3f} {tip.z:.3f}")

tuned = told("nempc_controller/set_parameters_atomically", "costs.input_rate", 0.3)
print("weight changed:", tuned.successful)
print("switch:", told("switch", "controller", "rod_mpc").reason, flush=True)
# the wheels of ROS lack tf2_msgs, which tf2_ros needs; this command does without
subprocess.run([*SOFTCR, "echo", "/tf", "--once"], check=True)

estimator = subprocess.Popen([*SOFTCR, "run", "estimator", "--namespace=again", "--use-sim-time"])
for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
    ask(ChangeState, "again/estimator/change_state", transition=Transition(id=transition))
for _ in range(2):
    replayed.clear()
    words = ["replay", sys.argv[1], "--online", "--namespace=again", "--wait=30"]
    subprocess.run([*SOFTCR, *words], check=True)
    print(f"replay: {len(replayed)} estimates")
estimator.terminate()
estimator.wait()
executor.shutdown()
spinning.join()
