"""What all tests share. ROS stays on this machine, in a domain of its own."""

import gc
import os
import sys

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

# Files whose tests wait for clocks, processes and networks, or compute for long.
LATER = {
    "test_any_model",
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
    "test_identification_recorded",
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
    "test_rod_cuda",
    "test_ros_commands",
    "test_ros_context",
    "test_segments_dynamics",  # these two test the oracles of test_segments_rod
    "test_segments_statics",
    "test_sensor_nodes",
    "test_several_robots",
    "test_study_bench_timing",
    "test_study_koopman",
    "test_study_tracking",
    "test_study_workers",
    "test_supervisor",
    "test_switching",
    "test_system",
    "test_time",
    "test_valve_driver",
    "test_valves_node",
    "test_viewer",
    "test_visuals",
}

LONG = {"test_docs", "test_study_contract"}  # files with some such tests

# Of the former, what `make test` runs as well: whole systems, from the command to the bag.
END_TO_END = (
    "test/test_bag_alone.py::test_a_bag_alone_is_replayed_to_the_bit_and_reported",
    "test/test_examples.py::test_nodes_virtual_time_and_replay_give_the_same_bits",
    "test/test_launch.py::test_a_run_ends_well_whose_launch_was_killed",
    "test/test_recording.py::test_the_node_records_what_was_on_the_wire",
    "test/test_ros_commands.py::test_topics_are_listed_with_types_ends_and_rates",
    "test/test_supervisor.py::test_a_run_goes_up_in_order_and_down_with_the_mover_first",
    "test/test_system.py::test_a_killed_node_vents_the_chambers_and_is_named",
    "test/test_system.py::test_ctrl_c_ends_cleanly_with_a_readable_bag",
    "test/test_system.py::test_runs_in_lockstep_are_equal_to_the_bit",
    "test/test_viewer.py::test_node_draws_what_is_published",
)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Beside another worker numba and torch compute on one thread: two on busy cores stall each
    other."""
    if hasattr(session.config, "workerinput"):
        numba.set_num_threads(1)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the second tier, whose files come first, as other long ones do: no worker ends with
    one."""
    for item in items:
        if "papers" in item.path.parts:
            item.add_marker("papers")
        elif item.path.stem in LATER and not item.nodeid.startswith(END_TO_END):
            item.add_marker("later")
    items.sort(key=lambda item: item.path.stem not in LATER | LONG)


_freeze = gc.freeze
gc.freeze = gc.unfreeze = lambda: None


@pytest.fixture(scope="module", autouse=True)
def small_heap():
    """Python's collector looks at nothing that was there before a file's first test. A look at all
    that thousands of tests import takes a second, and each run on virtual time and each node begins
    with one; that these freeze the heap themselves would end with their own unfreezing."""
    gc.collect()
    _freeze()


@pytest.fixture
def one_thread():
    """Threads of small batches wait for each other wherever other tests run beside them."""
    kinds = [(numba.get_num_threads, numba.set_num_threads)]
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        kinds.append((torch.get_num_threads, torch.set_num_threads))
    before = [get() for get, _ in kinds]
    for _, give in kinds:
        give(1)
    yield
    for (_, give), count in zip(kinds, before, strict=True):
        give(count)
