"""Which nodes DDS has not brought together yet.

Discovery takes its time, in each direction for itself: of a system that had been configured for a
second, one node in ten missed the others' messages for another second. So nobody goes active
before every publisher sees every subscriber, and the other way round.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from softcr_runtime.wire.diagnostics import DiagnosticReport


@dataclass(frozen=True)
class Ends:
    """What one node says of its connections.

    Attributes:
        publishes: topic -> how many subscribers its publisher sees.
        receives: topic -> how many publishers its subscription sees.
    """

    publishes: Mapping[str, int] = field(default_factory=dict)
    receives: Mapping[str, int] = field(default_factory=dict)


def ends_in(reports: Iterable[DiagnosticReport]) -> dict[str, Ends]:
    """Node name -> its connections, of the nodes of one namespace that tell them in their
    diagnostics."""
    return {
        report.node[1]: Ends(report.values["publishes"], report.values["receives"])
        for report in reports
        if {"publishes", "receives"} <= report.values.keys()
    }


def missing_connections(nodes: Mapping[str, Ends]) -> list[str]:
    """One phrase per end that sees fewer counterparts than the nodes have told of."""
    publishers = Counter(topic for ends in nodes.values() for topic in ends.publishes)
    subscribers = Counter(topic for ends in nodes.values() for topic in ends.receives)
    return [
        *_short(((name, ends.publishes) for name, ends in nodes.items()), subscribers, "readers"),
        *_short(((name, ends.receives) for name, ends in nodes.items()), publishers, "writers"),
    ]


def _short(
    seen: Iterable[tuple[str, Mapping[str, int]]], there: Counter[str], what: str
) -> list[str]:
    return [
        f"{name} sees {count} of {there[topic]} {what} of {topic}"
        for name, topics in seen
        for topic, count in topics.items()
        if count < there[topic]
    ]
