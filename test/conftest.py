"""What all tests share. ROS stays on this machine, in a domain of its own."""

import os

import numba
import pytest
from domains import fresh_domain
from hypothesis import HealthCheck, settings

from softcr_runtime.ros.context import set_environment

os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
set_environment()
if "PYTEST_XDIST_WORKER" in os.environ:  # workers do not hear each other
    os.environ["ROS_DOMAIN_ID"] = fresh_domain()
else:
    os.environ.setdefault("ROS_DOMAIN_ID", fresh_domain())

# no test needs an idle machine
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# Files whose tests wait for clocks, processes and networks.
WAITING = {
    "test_apcc_node",
    "test_arm_system",
    "test_bag_alone",
    "test_cc_estimator_node",
    "test_connections",
    "test_doctor",
    "test_emulate",
    "test_ends",
    "test_ethercat_wire",
    "test_examples",
    "test_force_torque",
    "test_goals",
    "test_hold",
    "test_launch",
    "test_live_parameters",
    "test_mocap_session",
    "test_namespaces",
    "test_natnet",
    "test_node",
    "test_package",
    "test_recording",
    "test_rehearse",
    "test_replay",
    "test_ros_commands",
    "test_ros_context",
    "test_sensor_nodes",
    "test_several_robots",
    "test_supervisor",
    "test_switching",
    "test_system",
    "test_time",
    "test_valves_node",
    "test_viewer",
    "test_visuals",
}


def pytest_configure(config: pytest.Config) -> None:
    """Beside another worker numba computes on one thread: two on busy cores stall each other."""
    if hasattr(config, "workerinput"):
        numba.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take long come first, so that no worker of `make test` ends with one alone."""
    items.sort(key=lambda item: item.path.stem not in WAITING)
