"""An emulated Net F/T box over UDP and HTTP, and the driver that is polled beside it."""

import time
from contextlib import closing, contextmanager

import numpy as np

from kit.processes import running, until
from softcr_hardware.force_torque.box import BoxWatch, ask_box
from softcr_hardware.force_torque.client import NetFtClient
from softcr_hardware.force_torque.driver import ForceTorqueDriver
from softcr_hardware.force_torque.emulator import NetFtBox, NetFtEmulator
from softcr_hardware.force_torque.readings import WrenchLimits

LENIENT = WrenchLimits(oldest=10.0)  # this machine is busy
WRENCH = np.array([0.4, -0.2, -2.5, 0.01, 0.02, -0.03])
"""What acts on the sensor."""


class Bench:
    """A box, a driver that is polled and told what the box says, and what it published."""

    def __init__(self, emulator, driver):
        self.emulator, self.box, self.driver = emulator, emulator.box, driver
        self.watch = BoxWatch(lambda: ask_box("127.0.0.1", emulator.http_port, 5.0))
        self.published = []

    def poll(self, condition, what):
        """Poll until a condition holds; returns its value."""

        def tried():
            if newest := self.driver.newest(time.monotonic()):
                self.published.append(newest)
            return condition()

        return until(tried, what)

    def flows(self, count=40):
        """Wait for so many wrenches; the mean of the last half of them."""
        goal = len(self.published) + count
        self.poll(lambda: len(self.published) >= goal, "wrenches")
        return np.mean([wrench for _, wrench in self.published[-count // 2 :]], axis=0)

    def silent(self, says):
        """Nothing is published any more, and this is said."""
        self.poll(lambda: self.trouble.startswith(says), f"{says}, not {self.trouble}")
        before = len(self.published)
        polls = iter(range(40))
        self.poll(lambda: next(polls, None) is None, "some polls")
        assert len(self.published) == before

    def look(self):
        """Ask the box what it says of itself, and tell the driver."""
        self.watch.look()
        assert not self.watch.problem
        self.driver.see_box(time.monotonic(), self.watch.settings)

    def set(self, name, value):
        """Change a setting of the box, and look."""
        self.emulator.set(name, value)
        self.look()

    @property
    def trouble(self):
        return self.driver.trouble(time.monotonic())


@contextmanager
def bench(
    mounting=None, resting=WRENCH, rate=1000.0, low_pass_hz=0.0, uptime=100.0, **settings_of_box
):
    """A running bench, whose box has been on for some time [s]."""
    box = NetFtBox(lambda time: WRENCH, rate, start=time.monotonic() - uptime)
    for name, value in settings_of_box.items():
        box.set(name, value)
    emulator = NetFtEmulator(box, rdt_port=0, http_port=0)
    ports = emulator.rdt_port, emulator.http_port
    client = NetFtClient("127.0.0.1", *ports, every=low_pass_hz > 0.0)
    driver = ForceTorqueDriver(
        client, LENIENT, resting, low_pass_hz, mounting=mounting, name="mine.yaml"
    )
    with running(emulator), closing(client):
        client.open(time.monotonic())
        yield Bench(emulator, driver)
