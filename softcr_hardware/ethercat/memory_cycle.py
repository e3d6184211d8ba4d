"""The valve driver's cycle on emulated chambers in memory: what a machine's speed is told by."""

import itertools
from collections.abc import Callable

import numpy as np

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.memory_bus import MemoryBus
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.safety.settings import SafetySettings
from softcr_models.robots.robot import load_robot
from softcr_runtime.blocks.command_packets import CommandPacket

_CYCLE = 0.001  # [s]
_COMMANDED = 14  # cycles between commands: about 70 Hz


def memory_cycle() -> Callable[[], None]:
    """One cycle per call, on a clock of its own; the valves follow a slow wave, once the handshake
    is complete after 0.3 s."""
    station, robot = load_station("licher2025"), load_robot("licher2025")
    station = station.model_copy(update={"arming_test": False})
    data = ProcessData(station)
    safety = SafetySettings(require_operator=False, require_mocap=False)
    now = 0.0
    bus = MemoryBus(station, data, EmulatedActuator(station), lambda: now, quantised=False)
    driver = ValveDriver(station, robot.pressure_limits, data, bus, safety)
    driver.open()
    driver.enable()
    cycles = itertools.count(1)

    def cycle() -> None:
        nonlocal now
        number = next(cycles)
        now = number * _CYCLE
        if number % _COMMANDED == 0:
            wave = 3e4 * (1.0 + np.sin(6.0 * now + np.arange(len(station.chambers))))
            driver.hear("command", now, CommandPacket.single(round(1e9 * now), wave))
        driver.enable()
        driver.tick(now)

    return cycle
