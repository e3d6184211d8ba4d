"""The valves' fast cycle, a real EtherCAT master before emulated terminals.

The cycle is the driver's own, valves enabled, chambers under PID on a slow wave. What is timed is
how late the cycle wakes; the exchange and the thinking come after that and are told in the note.
"""

import gc
import time
from functools import partial

import numpy as np

from softcr_hardware.emulation.bench import cable, emulation, what_a_wire_lacks
from softcr_hardware.ethercat.bus import EtherCatBus
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.safety.settings import SafetySettings
from softcr_models.robots.robot import load_robot
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.cycle_timer import CycleTimer
from softcr_runtime.ros.realtime import schedule_realtime
from softcr_studies.frame.study import Metric, Must, Result
from softcr_studies.speed.timing import Effort, Skipped, speed_study, told

UNIT, BAD = "us late at waking", "bad working counters"
PERIOD = 0.001
_STRETCH = 15.0  # of `Effort.seconds`: a minute
_ALONE = SafetySettings(require_operator=False, require_mocap=False)
_COMMANDED = 14  # cycles between commands: 70 Hz
_MEAN, _AMPLITUDE, _WAVE = 3.5e4, 2.5e4, 2.0  # [Pa], [Pa], [s] of the commanded pressures


def cycle(priority: int, effort: Effort) -> Result:
    """With ordinary scheduling (0) or a real-time priority."""
    if lacking := what_a_wire_lacks():
        raise Skipped(lacking)
    with cable() as (near, far), emulation(["ethercat", "--interface", far, "--log", "/dev/null"]):
        return _measured(near, priority, round(_STRETCH * effort.seconds / PERIOD))


def _measured(interface: str, priority: int, count: int) -> Result:
    robot = load_robot("licher2025")
    station = load_station(robot.name, robot.chamber_names)
    station = station.model_copy(update={"arming_test": False})  # the cycle is what is timed
    data = ProcessData(station)
    bus = EtherCatBus(interface, station, data)
    driver = ValveDriver(station, robot.pressure_limits, data, bus, _ALONE, period=PERIOD)
    gc.collect()
    gc.freeze()  # as the node does: the collector would stop the cycle for 0.1 s
    driver.open()
    problem = schedule_realtime(priority)
    try:
        lateness, work, missed = _cycles(driver, count)
    finally:
        schedule_realtime(0)
        driver.close()
        gc.unfreeze()
    if problem:
        raise Skipped(problem)
    beyond, longest = np.percentile(lateness, 99.9), lateness.max()
    at_work, at_most = np.percentile(work, (50, 99))
    note = (
        f"{count} cycles: p99.9 {1e6 * beyond:.0f} us, longest {1e3 * longest:.1f} ms; "
        f"{missed} cycles missed; exchange and PID median {1e6 * at_work:.0f} us, "
        f"p99 {1e6 * at_most:.0f} us; "
        f"{'valves enabled' if driver.report.decision.enabled else 'VENTED'} at the end"
    )
    return {**told(1e6 * lateness, UNIT, note=note), BAD: bus.incomplete}


def _cycles(driver: ValveDriver, count: int) -> tuple[np.ndarray, np.ndarray, int]:
    """How late each cycle woke and how long it worked [s], and how many were missed."""
    lateness, work = np.empty(count), np.empty(count)
    phases = 2.0 * np.pi * np.arange(3) / 3.0
    timer = CycleTimer(PERIOD)
    for cycle in range(count):
        timer.wait()
        now = time.monotonic()
        if cycle % _COMMANDED == 0:
            wave = np.sin(2.0 * np.pi * now / _WAVE + phases)
            pressures = _MEAN + _AMPLITUDE * wave
            driver.hear("command", now, CommandPacket.single(round(1e9 * now), pressures))
        if not driver.report.decision.enabled:
            driver.enable()
        driver.tick(now)
        lateness[cycle] = now - (timer.start + timer.index * timer.period)
        work[cycle] = time.monotonic() - now
    return lateness, work, timer.missed


STUDY = speed_study(
    "speed/bus",
    "the valves' 1 kHz PID cycle before emulated terminals",
    {("1 kHz PID cycle", "ordinary scheduling"): partial(cycle, 0),
     ("1 kHz PID cycle", "SCHED_FIFO 70"): partial(cycle, 70)},
    [UNIT],
    metrics=(Metric(BAD, "-", BAD),),
    musts=(Must("p99", 200.0, 100.0), Must(BAD, 0.0)),
)  # fmt: skip
