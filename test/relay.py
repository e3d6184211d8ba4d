"""A small node for the tests of the runtime: commands the measured pressures times a factor."""

import sys
import threading
import time
from typing import Any

import numpy as np
from pydantic import Field

from softcr_models.errors import UserError
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.ros.process import run
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_runtime.wire.messages import pressures_from_message, pressures_to_message


class RelaySettings(NodeSettings):
    factor: float = Field(
        1.0,
        ge=0.0,
        le=2.0,
        description="factor on measured pressures",
        json_schema_extra={"live": True, "unit": "-"},
    )
    busy: float = Field(
        0.0, ge=0.0, le=60.0, description="time configure takes", json_schema_extra={"unit": "s"}
    )
    names: tuple[str, ...] = Field(("a", "b"), description="of nothing")


class Relay(LoopNode):
    """Commands the measured pressures times a factor."""

    default_name = "relay"
    Settings = RelaySettings
    settings: RelaySettings

    device_broken = False
    fail_next_tick = False
    fail_deactivate = False

    def on_configure_node(self) -> None:
        if self.device_broken:
            raise UserError("device /dev/nothing: not connected")
        # holds on in Python, as a compiler holds on in C
        end = time.monotonic() + self.settings.busy
        while time.monotonic() < end:
            pass
        self.receive("pressure/state", self._decoded)
        self._command = self.advertise("pressure/command")

    def loop(self, stop: threading.Event) -> None:
        while not stop.is_set():
            letter = self.inbox.get()
            if letter is None:
                continue
            if self.fail_next_tick:
                self.fail_next_tick = False
                raise ArithmeticError("no solution")
            self._send(self.settings.factor * letter.value, letter.stamp)
            self.finish_tick(letter.received, letter.stamp)

    def on_deactivate_node(self) -> None:
        self._send(np.zeros(len(self.robot.chambers)), self.now())
        if self.fail_deactivate:
            raise ArithmeticError("cannot stop")

    def diagnostic_values(self) -> dict[str, Any]:
        return {"factor": self.settings.factor, "nested": {"a": [1, 2]}}

    def diagnostic_warnings(self) -> list[str]:
        return ["factor is 0"] if self.settings.factor == 0.0 else []

    def _decoded(self, message: Any) -> np.ndarray:
        pressures = pressures_from_message(message, self.robot.chamber_names, "pressure/state")
        if pressures[0] == 66e3:
            raise RuntimeError("a bug in the decoder")
        return pressures

    def _send(self, pressures: np.ndarray, stamp: int) -> None:
        chambers = self.robot.chamber_names
        self._command.publish(pressures_to_message(pressures, chambers, stamp))


if __name__ == "__main__":
    sys.exit(run(Relay))
