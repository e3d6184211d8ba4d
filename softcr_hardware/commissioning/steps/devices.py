"""Who the devices are, and that the valves' terminals are operational."""

from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found

_LOOK = 1.0  # [s] for the first pose and wrench


def _run(session: Session) -> StepRecord:
    bench = session.bench
    session.drive.rest(_LOOK)
    findings = [Finding(words=f"terminals: {trouble}")] if (trouble := bench.check()) else []
    findings += [Finding(words=words) for words in bench.problems()]
    devices = bench.identity()
    session.record.devices = devices
    if bench.body() is None and devices.get("cameras"):
        findings.append(Finding(words="the cameras' server shows no body of the tip"))
    if bench.wrench() is None and devices.get("force_torque"):
        findings.append(Finding(words="the force-torque sensor sends no wrench"))
    lines = [f"{name}: {words or 'none'}" for name, words in devices.items()]
    return found(findings, lines, **devices)


STEP = Step("devices", "the devices identify themselves", _run)
