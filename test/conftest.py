"""What all tests share. ROS stays on this machine, in a domain of its own."""

import os
from pathlib import Path

import numba
import pytest
from domains import fresh_domain
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
# tests kill processes, which leave their segments in shared memory behind
os.environ["FASTDDS_BUILTIN_TRANSPORTS"] = "UDPv4"
if "PYTEST_XDIST_WORKER" in os.environ:  # workers do not hear each other
    os.environ["ROS_DOMAIN_ID"] = fresh_domain()
else:
    os.environ.setdefault("ROS_DOMAIN_ID", fresh_domain())

# Files whose tests wait for clocks, processes and networks: one after the other, while another
# worker of `make test` computes what the rest computes.
WAITING = {
    "test_apcc_node",
    "test_arm_system",
    "test_cc_estimator_node",
    "test_connections",
    "test_doctor",
    "test_emulate",
    "test_examples",
    "test_launch",
    "test_ethercat_wire",
    "test_force_torque",
    "test_hold",
    "test_mocap_session",
    "test_natnet",
    "test_node",
    "test_package",
    "test_recording",
    "test_rehearse",
    "test_replay",
    "test_sensor_nodes",
    "test_supervisor",
    "test_system",
    "test_valves_node",
    "test_viewer",
}


def pytest_configure(config: pytest.Config) -> None:
    """Beside another worker numba computes on one thread: two on busy cores stall each other."""
    if hasattr(config, "workerinput"):
        numba.set_num_threads(1)


class WholeFiles(LoadScopeScheduling):
    """A worker of `make test` takes whole files, or all that wait: what a file prepares for its
    tests is then prepared once."""

    def _split_scope(self, nodeid: str) -> str:
        name = Path(nodeid.partition("::")[0]).stem
        return "waiting" if name in WAITING else name


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Not by marks: xdist 3.8 adds groups to the names of tests, which pytest 9.2 keeps as they
    are, so that every test went to whichever worker was free."""
    return WholeFiles(config, log)
