"""Which parameters were changed while a system ran, by what its nodes said on /parameter_events."""

from collections.abc import Iterator
from typing import Any

from softcr_runtime.wire.namespaces import split

TOPIC = "/parameter_events"

_VALUES = (
    "", "bool_value", "integer_value", "double_value", "string_value", "byte_array_value",
    "bool_array_value", "integer_array_value", "double_array_value", "string_array_value",
)  # fmt: skip
"""Fields of rcl_interfaces/msg/ParameterValue by its `type`."""


def changes_in(message: Any) -> Iterator[str]:
    """One line for each parameter that changed: `node: name = value`.

    Parameters that are declared, and those that are removed with their node, are no changes.

    Args:
        message: rcl_interfaces/msg/ParameterEvent.
    """
    node = split(message.node)[1]
    for parameter in message.changed_parameters:
        yield f"{node}: {parameter.name} = {_told(parameter.value)}"


def _told(value: Any) -> str:
    if not 0 < value.type < len(_VALUES):
        return "not set"
    found = getattr(value, _VALUES[value.type])
    found = found.tolist() if hasattr(found, "tolist") else found
    return f"{found:.10g}" if isinstance(found, float) else str(found)
