"""Checks of clocks, real-time privileges and space. Pure functions of facts."""

from dataclasses import dataclass

from softcr_tools.doctor.finding import FAIL, WARN, Finding, judged

RECORDING_RATE = 1.5e6
"""Of a bag and its report [byte/s]; measured on `make sim`: 87 MB for a minute."""

LEAST_SPACE = 1e9
"""Below this a run must not begin [byte]: eleven minutes."""

LITTLE_SPACE = 1e10
"""Below this it is time to clean up [byte]."""

MOST_CLOCK_DIFFERENCE = 1e-3
"""Between system and monotonic clock while they are watched [s]; slewing makes 0.05 ms in 0.1 s."""

HIGHEST_PRIORITY = 70
"""That the documentation gives a node: the valves'."""

_SLOW_SOURCES = ("acpi_pm", "hpet", "jiffies")  # microseconds to read, or coarse
_LEAST_YEAR = 2025  # of a clock that somebody has set


@dataclass(frozen=True)
class ClockFacts:
    """The clocks of the machine."""

    monotonic_passed: float  # on the monotonic clock, while both were watched [s]
    system_passed: float  # on the system clock meanwhile [s]
    year: int  # on the system clock
    # whether the kernel has it that somebody keeps the time; None if unknown
    synchronised: bool | None
    source: str  # what the kernel reads the time from


@dataclass(frozen=True)
class RealtimeFacts:
    """What the kernel allows this process."""

    priority_error: str  # why a thread cannot have `HIGHEST_PRIORITY`; empty if it can
    locked_memory: int | None  # that may be locked [byte]; None for any
    preempt_rt: bool  # whether the kernel is a real-time one
    kernel: str  # its release
    governor: str  # of the processor's frequency; empty where there is none
    cores: int  # of the processor that this process may use


@dataclass(frozen=True)
class SpaceFacts:
    """Room for what is written."""

    directory: str  # where results go
    free: int  # there [byte]
    writable: bool  # whether this process may write there
    segments: int  # of Fast DDS in shared memory
    shared_free: int  # free shared memory [byte]


def check_clock_rate(facts: ClockFacts) -> Finding:
    """Whether the system clock (stamps) goes as the monotonic one (loops)."""
    apart = facts.system_passed - facts.monotonic_passed
    watched = f"{1e3 * apart:+.3f} ms apart after {facts.monotonic_passed:.1f} s"
    return judged("clocks agree", f"system and monotonic clock {watched}",
        (facts.year < _LEAST_YEAR, FAIL, f"the system clock says {facts.year}",
         "sudo timedatectl set-ntp true"),
        (not abs(apart) <= MOST_CLOCK_DIFFERENCE, FAIL,
         f"the system clock jumped by {1e3 * apart:+.1f} ms: stamps would be refused as old",
         "stop what sets the date in steps; let chrony slew it: sudo apt install chrony")
    )  # fmt: skip


def check_clock_kept(facts: ClockFacts) -> Finding:
    """Whether somebody keeps the system clock: bags of two machines are compared by it."""
    return judged("clock synchronised", "kept by NTP or PTP",
        (facts.synchronised is None, WARN, "the kernel does not say", "timedatectl status"),
        (not facts.synchronised, WARN,
         "nobody keeps it: its time is not comparable with that of other machines",
         "sudo timedatectl set-ntp true")
    )  # fmt: skip


def check_clock_source(facts: ClockFacts) -> Finding:
    """Whether reading the time is cheap."""
    return judged("clock source", facts.source or "unknown",
        (facts.source in _SLOW_SOURCES, WARN,
         f"{facts.source}: slow to read; a 1 kHz cycle reads it several times",
         "boot with tsc=reliable, or switch the machine's power saving off in its BIOS")
    )  # fmt: skip


def check_realtime_priority(facts: RealtimeFacts) -> Finding:
    """Whether nodes may be given fixed priorities."""
    return judged("real-time priority", f"up to {HIGHEST_PRIORITY} permitted",
        (bool(facts.priority_error), WARN,
         f"refused: {facts.priority_error}; under load cycles will be missed",
         "add '@realtime - rtprio 90' to /etc/security/limits.conf, yourself to group realtime "
         "and log in again")
    )  # fmt: skip


def check_locked_memory(facts: RealtimeFacts) -> Finding:
    """Whether memory may be locked against swapping."""
    allowed = facts.locked_memory
    return judged("locked memory", "unlimited",
        (allowed is not None, WARN, f"{(allowed or 0) / 2**20:.0f} MiB",
         "add '@realtime - memlock unlimited' to /etc/security/limits.conf and log in again")
    )  # fmt: skip


def check_kernel(facts: RealtimeFacts) -> Finding:
    """Whether the kernel is a real-time one."""
    return judged("kernel", f"{facts.kernel}, PREEMPT_RT",
        (not facts.preempt_rt, WARN,
         f"{facts.kernel}: not a real-time one; rare wake-ups come milliseconds late",
         "sudo apt install linux-image-rt-amd64  (Debian) and boot it")
    )  # fmt: skip


def check_processor(facts: RealtimeFacts) -> Finding:
    """Whether there are cores enough, at full speed."""
    return judged("processor",
        f"{facts.cores} cores" + (f", {facts.governor}" if facts.governor else ""),
        (facts.cores < 2, WARN, "one core for five nodes",
         "give this process more cores: taskset, or the container's settings"),
        (facts.governor in ("powersave", "conservative"), WARN,
         f"governor {facts.governor}: slow after every pause",
         "sudo cpupower frequency-set -g performance")
    )  # fmt: skip


def check_disk(facts: SpaceFacts) -> Finding:
    """Whether a run can be recorded."""
    hours = facts.free / RECORDING_RATE / 3600
    room = f"{facts.free / 1e9:.1f} GB free in {facts.directory}: {hours:.1f} h of recording"
    return judged("disk", room,
        (not facts.writable, FAIL, f"{facts.directory}: may not be written",
         f"sudo chown $USER {facts.directory}, or another directory with --results"),
        (facts.free < LEAST_SPACE, FAIL, room, f"remove old runs below {facts.directory}"),
        (facts.free < LITTLE_SPACE, WARN, room, f"remove old runs below {facts.directory}")
    )  # fmt: skip


def check_shared_memory(facts: SpaceFacts) -> Finding:
    """Whether dead nodes have left shared memory full: their readers lock up on it."""
    return judged("shared memory",
        f"{facts.segments} segments of DDS, {facts.shared_free / 1e6:.0f} MB free",
        (facts.shared_free < 16e6, WARN,
         f"{facts.shared_free / 1e6:.0f} MB free in /dev/shm: nodes will not start",
         "stop all nodes, then: rm /dev/shm/*fastrtps*"),
        (facts.segments > 200, WARN,
         f"{facts.segments} segments of DDS: most are of nodes that were killed",
         "stop all nodes, then: rm /dev/shm/*fastrtps*")
    )  # fmt: skip
