"""Whether the chambers are vented and the operator has let go of the switch, as the valves' node
says: sensors are calibrated only then."""

from typing import Annotated, Any

from pydantic import Field
from rclpy.node import Node

from softcr_hardware.safety.safety import Action, Switch
from softcr_models.errors import UserError
from softcr_runtime.settings.node_settings import FIXED
from softcr_runtime.wire.topics import TOPICS, qos

_WITHOUT_VALVES = "calibrate though no valves' node is there: the operator says that all is vented"
WithoutValves = Annotated[bool, Field(description=_WITHOUT_VALVES, json_schema_extra=FIXED)]
"""Type of the parameter `without_valves`, which a node with a VentedWitness has."""

_TOPIC = "safety/state"


class VentedWitness:
    """Listens to safety/state, of which the newest is told to everybody who asks later, too.

    A topic that nobody publishes any more says nothing: what was heard of a node that ended may be
    old. What cannot be read is not taken for vented, either.
    """

    def __init__(self, node: Node) -> None:
        """Listen with `node`, whose executor must run."""
        self._node = node
        self._heard: dict[str, str] | None = None
        kind = TOPICS[_TOPIC].message_class()
        node.create_subscription(kind, _TOPIC, self._hear, qos(_TOPIC))

    def check(self, what: str, without_valves: bool) -> None:
        """Nothing, if the valves are disarmed and vented, and the operator's switch is released.

        Args:
            what: is to be done, for the message.
            without_valves: whether it may be done though no valves' node is there.

        Raises:
            UserError: they are not, or nobody says so.
        """
        if self._node.count_publishers(_TOPIC) == 0:
            self._heard = None
            if without_valves:
                return
            raise UserError(
                f"{what}: no valves' node says that the chambers are vented; configure it, or say "
                "so yourself: parameter without_valves = true"
            )
        if self._heard is None:
            raise UserError(f"{what}: {_TOPIC} says nothing yet; configure the valves' node")
        enabled, action = self._heard.get("enabled"), self._heard.get("action")
        if self._heard.get("testing") == "true":
            raise UserError(f"{what}: the arming test moves the valves: wait until it is over")
        if enabled != "false" or action != Action.VENT_NOW.words:
            raise UserError(
                f"{what}: {_TOPIC} says enabled {enabled}, action {action}; must be enabled false, "
                f"action {Action.VENT_NOW.words}: vent the valves"
            )
        switch = self._heard.get("switch")
        if switch not in (Switch.RELEASED, Switch.NOT_REQUIRED):
            raise UserError(f"{what}: the deadman's switch is {switch}, must be released")

    def _hear(self, status: Any) -> None:
        self._heard = {value.key: value.value for value in status.values}
