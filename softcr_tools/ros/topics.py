"""`softcr topics`: which topics there are, of which type, between whom, and how often."""

import json as json_format
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import Field

from softcr_models.errors import UserError
from softcr_runtime.settings.command_line import command
from softcr_runtime.settings.node_settings import Seconds
from softcr_tools.ros.interfaces import interface_class
from softcr_tools.ros.participant import (
    Connection,
    Participant,
    beside,
    is_plumbing,
    node_of,
    whereabouts,
)
from softcr_tools.ros.tables import print_table

_LISTENERS = {"recorder", "visuals", "viewer"}


class Listening(Connection):
    """How topics are looked at."""

    seconds: Seconds = Field(3.0, ge=0.5, le=600.0, description="how long --rates listens")


@command
def topics(
    *, listening: Listening, rates: bool = False, all: bool = False, json: bool = False
) -> int:
    """List topics with their type, publishers and subscriptions.

    Topics that nobody publishes and that only the recorder and viewers would hear, such as those of
    other kinds of robots, are counted and not listed.

    Args:
        rates: measure the rate of messages by listening to every topic for a few seconds.
        all: also list these topics and those that ROS gives every node.
        json: print JSON, for programs.
    """

    def act(participant: Participant) -> int:
        graph = participant.settled_graph()
        found = [
            row
            for name, types in sorted(graph.topics.items())
            if participant.in_namespace(name) and (all or not is_plumbing(name))
            if (row := _row(participant, name, types))["publishers"] or row["subscriptions"]
        ]
        silent = [] if all else [row for row in found if is_silent(row)]
        found = [row for row in found if row not in silent]
        if rates:
            measured = _rates(participant, found, listening.seconds)
            found = [{**row, "rate_hz": measured.get(row["topic"])} for row in found]
        if json:
            print(json_format.dumps(found, indent=2))
        elif not found:
            print(f"no topic is visible ({whereabouts()})")
        else:
            _print(found, rates)
            if silent:
                print(f"{len(silent)} topics that only the recorder and viewers wait for: --all")
        return 0

    return beside("topics", listening, act)


def is_silent(row: dict[str, Any]) -> bool:
    """Whether nobody publishes a topic, and only those that hear everything wait for it."""
    ends = {name.rpartition("/")[2] for name in row["subscriptions"]}
    return not row["publishers"] and ends <= _LISTENERS


def _row(participant: Participant, name: str, types: Sequence[str]) -> dict[str, Any]:
    return {
        "topic": name,
        "types": list(types),
        "publishers": sorted(map(node_of, participant.publishers(name))),
        "subscriptions": sorted(map(node_of, participant.subscriptions(name))),
    }


def _rates(
    participant: Participant, found: Sequence[dict[str, Any]], seconds: float
) -> dict[str, float | None]:
    """Messages per second by topic; None where the type is not known here.

    With two messages or more, it is the intervals between the first and the last that count.
    """
    arrived: dict[str, list[float]] = defaultdict(list)
    rates: dict[str, float | None] = {}
    for row in found:
        name = row["topic"]
        try:
            kind = interface_class(row["types"][0])
        except UserError:
            rates[name] = None
            continue
        rates[name] = 0.0
        participant.hear(name, kind, partial(_note, arrived[name]), raw=True)
    participant.wait(lambda: False, seconds)
    for name, times in arrived.items():
        if len(times) > 1 and times[-1] > times[0]:
            rates[name] = round((len(times) - 1) / (times[-1] - times[0]), 3)
        elif times:
            rates[name] = round(len(times) / seconds, 3)
    return rates


def _note(times: list[float], _: bytes) -> None:
    times.append(time.monotonic())


def _print(found: Sequence[dict[str, Any]], rates: bool) -> None:
    columns = ["topic", "type", "publishers", "subscriptions"]
    rows = [
        [
            row["topic"], ", ".join(row["types"]), _names(row["publishers"]),
            _names(row["subscriptions"]),
        ]
        for row in found
    ]  # fmt: skip
    if rates:
        columns.insert(1, "rate [Hz]")
        for row, cells in zip(found, rows, strict=True):
            rate = row["rate_hz"]
            cells.insert(1, "?" if rate is None else f"{rate:.3g}" if rate else "silent")
    print_table(columns, rows)


def _names(names: Sequence[str]) -> str:
    return ", ".join(name.removeprefix("/") for name in names) or "-"
