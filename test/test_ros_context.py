"""What ROS is told where the environment tells nothing: nodes of this machine, over UDP alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from domains import fresh_domain

from softcr_runtime.ros import context as ros_context

NAMES = (
    "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "RMW_IMPLEMENTATION",
    "FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE", "FASTDDS_BUILTIN_TRANSPORTS",
)  # fmt: skip
PROFILES = "FASTRTPS_DEFAULT_PROFILES_FILE"


def environment(monkeypatch, **told):
    """What stands in the environment after ours was added to what was told."""
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that what is set here does not stay
        monkeypatch.delenv(name)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    ros_context.set_environment()
    return {name: os.environ[name] for name in NAMES if name in os.environ}


@pytest.mark.parametrize(
    "told", [{}, {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, {"ROS_LOCALHOST_ONLY": "1"}]
)
def test_this_machine_alone_is_a_file_of_profiles(monkeypatch, told):
    first = environment(monkeypatch, **told)
    assert Path(first[PROFILES]).is_file()
    assert first["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "SYSTEM_DEFAULT"
    assert "ROS_LOCALHOST_ONLY" not in first
    assert "discovery range LOCALHOST (this machine only)" in ros_context.whereabouts()
    assert environment(monkeypatch, **first) == first  # of a node that this process starts


CHOSEN = [{"ROS_AUTOMATIC_DISCOVERY_RANGE": each} for each in ("SUBNET", "OFF")]
CHOSEN += [{"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}, {"ROS_STATIC_PEERS": "192.168.1.2"}]


@pytest.mark.parametrize("told", [*CHOSEN, {PROFILES: "/home/me/profiles.xml"}])
def test_what_somebody_has_chosen_stays(monkeypatch, told):
    found = environment(monkeypatch, **told)
    assert found.items() >= told.items()
    assert found.get(PROFILES) == told.get(PROFILES)
    expected = told.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    assert found["ROS_AUTOMATIC_DISCOVERY_RANGE"] == expected
    assert f"discovery range {expected}" in ros_context.whereabouts()


NODE = """
import sys, time, rclpy
from pathlib import Path
from std_msgs.msg import String
from softcr_runtime.ros.context import set_environment
name, other, ours = sys.argv[1:]
if ours == "ours":
    set_environment()
rclpy.init()
node = rclpy.create_node(name)
heard = set()
node.create_subscription(String, "said", lambda message: heard.add(message.data), 10)
publisher = node.create_publisher(String, "said", 10)
end = time.monotonic() + 60.0
after = 10
while after and time.monotonic() < end:
    publisher.publish(String(data=name))
    rclpy.spin_once(node, timeout_sec=0.1)
    after -= other in heard  # goes on for the other one
threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
print(other in heard, any(each.startswith("dds.shm") for each in threads), flush=True)
"""


def test_our_nodes_share_no_memory_and_hear_those_of_others():
    pytest.importorskip("rclpy")
    told = {"ROS_DOMAIN_ID": fresh_domain(), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    pairs = (("one", "two", "ours"), ("two", "one", "theirs"))
    options = {"env": clean | told, "stdout": subprocess.PIPE, "text": True}
    nodes = [subprocess.Popen([sys.executable, "-c", NODE, *words], **options) for words in pairs]
    said = [node.communicate(timeout=120.0)[0].split() for node in nodes]
    assert said == [["True", "False"], ["True", "True"]]


KEYS = (
    "identity_ca.cert.pem", "cert.pem", "key.pem", "permissions_ca.cert.pem", "governance.p7s",
    "permissions.p7s",
)  # fmt: skip


@pytest.mark.parametrize("keys", [(), KEYS])
def test_keys_that_are_none_are_one_line_before_anything_starts(monkeypatch, tmp_path, keys):
    enclave = tmp_path / "enclaves" / "bench"
    enclave.mkdir(parents=True)
    for name in keys:
        (enclave / name).write_text("no key")
    told = {"ENABLE": "true", "STRATEGY": "Enforce", "ENCLAVE_OVERRIDE": "/bench"}
    for name, value in {**told, "KEYSTORE": str(tmp_path)}.items():
        monkeypatch.setenv(f"ROS_SECURITY_{name}", value)
    error = ros_context.security_error()
    assert error.startswith("ROS 2 does not start: ")
    assert "\n" not in error
