"""Bags of experiments: what nodes would have published, written without nodes and clock."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rosbags.interfaces import Connection
from rosbags.rosbag2 import WriterError
from rosbags.typesys import Stores, get_typestore

from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_runtime.bags.message_bytes import cdr_of
from softcr_runtime.bags.recording import BagWriter
from softcr_runtime.wire.diagnostics import DiagnosticReport, diagnostics_to_message
from softcr_runtime.wire.topics import TOPICS

DIAGNOSTICS = "/diagnostics"


class OfflineBag:
    """A bag that is kept in memory until it is written: nothing disturbs who measures times."""

    def __init__(self) -> None:
        self._messages: list[tuple[str, int, bytes]] = []

    @property
    def last_stamp(self) -> int:
        """The latest time of a message [ns]; 0 without one."""
        return max((stamp for _, stamp, _ in self._messages), default=0)

    def add(self, topic: str, stamp: int, message: Any) -> None:
        """One message of a topic of the table, received at `stamp` [ns]."""
        self._messages.append((topic, stamp, cdr_of(message)))

    def add_statuses(self, reports: Iterable[DiagnosticReport]) -> None:
        """What nodes say of themselves at the end of a run, so that readers know its settings."""
        stamp = self.last_stamp
        self.add(DIAGNOSTICS, stamp, diagnostics_to_message(list(reports), stamp))

    def write(self, directory: Path) -> None:
        """Write a rosbag2 directory (mcap). References repeat themselves: compressed, a fraction.

        Raises:
            UserError: `directory` exists or cannot be written.
        """
        typestore = get_typestore(Stores.ROS2_JAZZY)
        connections: dict[str, Connection] = {}
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            with BagWriter(directory) as writer:
                for topic, stamp, payload in self._messages:
                    if topic not in connections:
                        name = topic if topic.startswith("/") else f"/{topic}"
                        type_ = TOPICS[topic].type
                        connections[topic] = writer.add_connection(name, type_, typestore=typestore)
                    writer.write(connections[topic], stamp, payload)
        except (OSError, WriterError) as error:
            raise UserError(f"cannot write the bag {directory}: {error}") from None


def status(node: str, robot: Robot, values: Mapping[str, Any]) -> DiagnosticReport:
    """What a node of that name would say in /diagnostics."""
    told = {"mode": "lockstep", **values}
    return DiagnosticReport(f"{node}: loop", 0, "in a plain loop, without ROS", robot.name, told)
