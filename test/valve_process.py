"""A process that owns the valves of an interface, enables and fills them: to be killed."""

import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np

from softcr_hardware.ethercat.bus import EtherCatBus
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.safety.settings import SafetySettings
from softcr_models import load_robot
from softcr_runtime.blocks.command_packets import CommandPacket

EASY = SafetySettings(
    require_operator=False,
    require_mocap=False,
    command_hold=0.5,
    command_vent=2.0,
    command_frozen=0.0,  # one pressure is commanded all the time
    pressure_vent=0.06,  # after exchange_vent: a silent bus has one reason
)
"""Nothing but the bus may end what these tests watch; the ages have tests on virtual time."""


def valve_driver(interface, say=lambda line: None, station="licher2025", **changes):
    """A driver over the real master, as the node builds it."""
    station = load_station(station).model_copy(update={"arming_test": False})
    data = ProcessData(station)
    bus = EtherCatBus(interface, station, data)
    limits = load_robot("licher2025").pressure_limits
    return ValveDriver(station, limits, data, bus, EASY, say=say, **changes)


@contextmanager
def filled(*words):
    """Such a process with these words, whose chambers are full; killed in the end."""
    command = [sys.executable, __file__, *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "filled\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main():
    driver = valve_driver(sys.argv[1], station=(sys.argv[2:] or ["licher2025"])[0])
    driver.open()
    asked, filled, told = time.monotonic(), False, {""}
    while True:
        time.sleep(0.001)
        now = time.monotonic()
        driver.hear("command", now, CommandPacket.single(round(1e9 * now), np.full(3, 5e4)))
        report = driver.tick(now)
        if filled and report.decision.cause not in told:
            told.add(report.decision.cause)
            print(report.decision.cause, flush=True)
        if not report.decision.enabled:
            if now - asked > 2.0:
                asked = now
                driver.reset(checked=True)  # a busy machine may have looked like a fault
            driver.enable()
        elif report.pressures.min() > 4e4 and not filled:
            filled = True
            print("filled", flush=True)


if __name__ == "__main__":
    main()
