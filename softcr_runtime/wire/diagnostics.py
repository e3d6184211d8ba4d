"""Diagnostics as messages, both ways."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from softcr_models.files.small_files import parsed_json
from softcr_runtime.wire.messages import header
from softcr_runtime.wire.namespaces import split

OK, WARN, ERROR, STALE = range(4)
"""Levels of diagnostic_msgs/DiagnosticStatus."""


LARGEST_TOLD = 4 << 20
"""Of the texts of a message that may be JSON, and of all that the nodes of a bag said last
[characters]."""

FILE_KEYS = ("text", "base64")
"""Keys of a status that tells a file's content."""


@dataclass(frozen=True)
class DiagnosticReport:
    """One decoded status of /diagnostics.

    Attributes:
        name: "<node>: <part>", the node with its namespace: `robot1/estimator: loop`.
        level: 0 OK, 1 WARN, 2 ERROR, 3 STALE.
        message: one line.
        hardware_id: name of the robot, with the namespace likewise.
        values: by key; what was written as JSON is read back, other text stays text.
    """

    name: str
    level: int
    message: str
    hardware_id: str
    values: dict[str, Any]

    @property
    def node(self) -> tuple[str, str]:
        """Namespace, without slashes around it, and name of the node that says it."""
        return node_of_status(self.name)


def node_of_status(name: str) -> tuple[str, str]:
    """Namespace, without slashes around it, and name of the node in a status's name."""
    return split(name.partition(":")[0])


def diagnostics_to_message(reports: Sequence[DiagnosticReport], stamp: int) -> Any:
    """diagnostic_msgs/DiagnosticArray; values that are not text are written as JSON. Stamp [ns]."""
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

    statuses = [
        DiagnosticStatus(
            level=bytes([report.level]),
            name=report.name,
            message=report.message,
            hardware_id=report.hardware_id,
            values=[
                KeyValue(key=key, value=value if isinstance(value, str) else json.dumps(value))
                for key, value in report.values.items()
            ],
        )
        for report in reports
    ]
    return DiagnosticArray(header=header(stamp, ""), status=statuses)


class ToldSize:
    """How much the nodes of a bag say of themselves, by the last text under each name.

    As JSON, a text can stand for thirty times as many bytes of Python's objects.
    """

    def __init__(self) -> None:
        """Of nodes that have said nothing yet."""
        self._sizes: dict[tuple[str, str], int] = {}
        self._whole = 0

    def take(self, message: Any, files: bool = False) -> None:
        """Adds a DiagnosticArray, which must not be parsed where this raises.

        Args:
            message: decoded.
            files: whether contents of files, which are never parsed, stand in it, too.

        Raises:
            ValueError: all would be more than `LARGEST_TOLD`; the message is then not counted.
        """
        sizes = {
            (status.name, pair.key): len(pair.value)
            for status in message.status
            for pair in status.values
            if not files or pair.key not in FILE_KEYS
        }
        whole = self._whole + sum(sizes.values())
        whole -= sum(self._sizes.get(each, 0) for each in sizes)
        if whole > LARGEST_TOLD:
            raise ValueError(f"nodes say {whole} bytes of themselves, allowed are {LARGEST_TOLD}")
        self._sizes |= sizes
        self._whole = whole


def diagnostics_from_message(message: Any) -> list[DiagnosticReport]:
    """The statuses of a DiagnosticArray, of any node, ours or not; all text stays text where it is
    more than `LARGEST_TOLD`."""
    size = sum(len(pair.value) for status in message.status for pair in status.values)
    value_of = _json_or_text if size <= LARGEST_TOLD else str
    return [
        DiagnosticReport(
            name=status.name,
            # a byte is bytes in rclpy and an int in rosbags
            level=status.level[0] if isinstance(status.level, bytes) else int(status.level),
            message=status.message,
            hardware_id=status.hardware_id,
            values={pair.key: value_of(pair.value) for pair in status.values},
        )
        for status in message.status
    ]


def _json_or_text(text: str) -> Any:
    try:
        return parsed_json(text)
    except ValueError:
        return text
