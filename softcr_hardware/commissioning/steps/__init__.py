"""The steps of a commissioning, one file each, in their order."""

from softcr_hardware.commissioning.session import Step
from softcr_hardware.commissioning.steps import (
    base,
    deadman,
    devices,
    exhaust,
    flow,
    force_torque,
    leak,
    sensors,
    slope,
    survey,
    watchdog,
    wiring,
    zero,
)

STEPS: tuple[Step, ...] = (
    devices.STEP,
    zero.STEP,
    sensors.STEP,
    exhaust.STEP,
    survey.STEP,
    wiring.STEP,
    slope.STEP,
    leak.STEP,
    flow.STEP,
    base.STEP,
    force_torque.STEP,
    watchdog.STEP,
    deadman.STEP,
)
"""All of them."""
