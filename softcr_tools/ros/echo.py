"""`softcr echo`: the messages of a topic, as text."""

import json as json_format
import os
import sys
from collections import deque
from dataclasses import asdict
from typing import Any

from pydantic import Field

from softcr_models.errors import UserError
from softcr_runtime.bags.message_bytes import decoded
from softcr_runtime.console.terminal import ended_by_signals, show
from softcr_runtime.settings.command_line import command
from softcr_runtime.wire.tf_types import TF_MESSAGE, is_installed
from softcr_tools.ros.interfaces import interface_class, lines, picked, plain, without_nan
from softcr_tools.ros.participant import Connection, Participant, Unanswered, beside, node_of


class Hearing(Connection):
    """How a topic is heard."""

    count: int = Field(
        0, ge=0, description="number of messages after which to end; 0: run until stopped"
    )


@command
def echo(
    topic: str,
    /,
    *,
    hearing: Hearing,
    once: bool = False,
    field: str = "",
    json: bool = False,
) -> int:
    """Print the messages of a topic, until Ctrl-C.

    The subscription adapts to what the publishers offer, so the last message of a latched topic
    such as safety/state arrives at once. Long arrays are shortened, and the points of a cloud are
    printed by field.

    Args:
        topic: name of the topic, as in `softcr topics`.
        once: same as --count 1.
        field: print only a part of each message, such as effort[0] or pose.position.x.
        json: print one line of JSON for each message, without shortening.
    """
    if once and hearing.count > 1:
        raise UserError(f"option --once with --count {hearing.count}: only one of them can be")
    wanted = 1 if once else hearing.count

    def act(participant: Participant) -> int:
        name, graph = participant.found("topic", topic)
        type_ = _the_type(name, graph.topics[name])
        raw = type_ == TF_MESSAGE and not is_installed()
        kind = interface_class(type_)
        if not participant.wait(
            lambda: bool(participant.publishers(name)), participant.connection.timeout
        ):
            ears = sorted({node_of(each) for each in participant.subscriptions(name)})
            raise Unanswered(
                f"topic {name}: it has no publisher; subscribers: {', '.join(ears) or 'none'}"
            )
        messages: deque[Any] = deque()
        participant.hear(name, kind, lambda message: messages.append(_read(message)), raw)
        return _print(participant, name, messages, wanted, field, json)

    try:
        return beside("echo", hearing, act)
    except BrokenPipeError:  # whoever reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _print(
    participant: Participant,
    name: str,
    messages: deque[Any],
    wanted: int,
    field: str,
    json: bool,
) -> int:
    timeout, printed = participant.connection.timeout, 0
    with ended_by_signals() as stop:
        while not (wanted and printed == wanted) and not stop.is_set():
            waits = timeout if wanted or not printed else 1.0
            if not participant.wait(lambda: bool(messages) or stop.is_set(), waits):
                if wanted or not printed:
                    said = f"{printed} of {wanted} came" if wanted else "none came"
                    by = sorted({node_of(each) for each in participant.publishers(name)})
                    raise Unanswered(
                        f"topic {name}: no message within {timeout:g} s ({said}); it is published "
                        f"by {', '.join(by) or 'nobody'}"
                    )
                continue
            while messages and not (wanted and printed == wanted):
                value = picked(plain(messages.popleft()), field)
                if json:
                    print(json_format.dumps(without_nan(value), allow_nan=False), flush=True)
                else:
                    ending = [] if field else ["---"]
                    show("\n".join([*lines(value), *ending]))
                printed += 1
    return 0


def _read(message: Any) -> Any:
    """The message; of one that came raw, because its package is not there, its fields."""
    if not isinstance(message, bytes):
        return message
    return asdict(decoded(message, TF_MESSAGE), dict_factory=_fields)


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if not name.startswith("__")}


def _the_type(name: str, types: tuple[str, ...]) -> str:
    if len(types) != 1:
        raise UserError(f"topic {name}: has several types: {', '.join(types)}")
    return types[0]
