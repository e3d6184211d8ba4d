"""Who sees whom: what a supervisor waits for before a run."""

import pytest

pytest.importorskip("rclpy")

from softcr_runtime.ros.executor.connections import Ends, ends_in, missing_connections
from softcr_runtime.wire.diagnostics import (
    DiagnosticReport,
    diagnostics_from_message,
    diagnostics_to_message,
)

PLANT = Ends({"/state": 2}, {"/command": 1})
WATCHER = Ends({}, {"/state": 1})
MOVER = Ends({"/command": 1}, {"/state": 1})


def test_each_direction_counts_for_itself_and_readers_from_elsewhere_do_no_harm():
    assert missing_connections({"plant": PLANT, "watcher": WATCHER, "mover": MOVER}) == []
    assert missing_connections({}) == []
    seen_elsewhere = Ends({"/state": 7}, {"/command": 3})
    assert missing_connections({"plant": seen_elsewhere, "mover": MOVER}) == []
    late = {"plant": Ends({"/state": 1}, {"/command": 1}), "watcher": WATCHER, "mover": MOVER}
    assert missing_connections(late) == ["plant sees 1 of 2 readers of /state"]
    late = {"plant": PLANT, "watcher": Ends({}, {"/state": 0}), "mover": MOVER}
    assert missing_connections(late) == ["watcher sees 0 of 1 writers of /state"]


def test_connections_are_read_from_diagnostics():
    reports = [
        DiagnosticReport("plant: loop", 0, "", "", {"publishes": {"/state": 2}, "receives": {}}),
        DiagnosticReport("other: disk", 0, "", "", {"free": 3}),
    ]
    found = ends_in(diagnostics_from_message(diagnostics_to_message(reports, 1)))
    assert found == {"plant": Ends({"/state": 2}, {})}
