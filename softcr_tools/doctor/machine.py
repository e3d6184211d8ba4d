"""Clocks, real-time privileges and space: pure checks, and what this machine gives them."""

import ctypes
import os
import resource
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path

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
_WATCHED = 0.1  # how long both clocks are watched [s]
_TIME_ERROR = 5  # of adjtimex: nobody keeps the clock (linux/timex.h)
_TIMEX_BYTES = 1024  # more than struct timex has


def clocks() -> list[Finding]:
    """The clocks, watched for a moment."""
    monotonic, system = time.monotonic(), time.time()
    time.sleep(_WATCHED)
    monotonic_passed, system_passed = time.monotonic() - monotonic, time.time() - system
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return [
        check_clock_rate(monotonic_passed, system_passed, time.gmtime().tm_year),
        check_clock_kept(_synchronised()),
        check_clock_source(kernel_text(source)),
    ]


def check_clock_rate(monotonic_passed: float, system_passed: float, year: int) -> Finding:
    """Whether the system clock (stamps) goes as the monotonic one (loops), both watched [s]."""
    apart = system_passed - monotonic_passed
    watched = f"{1e3 * apart:+.3f} ms apart after {monotonic_passed:.1f} s"
    return judged("clocks agree", f"system and monotonic clock {watched}",
        (year < _LEAST_YEAR, FAIL, f"the system clock says {year}",
         "sudo timedatectl set-ntp true"),
        (not abs(apart) <= MOST_CLOCK_DIFFERENCE, FAIL,
         f"the system clock jumped by {1e3 * apart:+.1f} ms: stamps would be refused as old",
         "stop what sets the date in steps; let chrony slew it: sudo apt install chrony")
    )  # fmt: skip


def check_clock_kept(synchronised: bool | None) -> Finding:
    """Whether somebody keeps the system clock, None if unknown: bags of two machines are compared
    by it."""
    return judged("clock synchronised", "kept by NTP or PTP",
        (synchronised is None, WARN, "the kernel does not say", "timedatectl status"),
        (not synchronised, WARN,
         "not synchronised: its time cannot be compared with that of other machines",
         "sudo timedatectl set-ntp true")
    )  # fmt: skip


def check_clock_source(source: str) -> Finding:
    """Whether reading the time is cheap."""
    return judged("clock source", source or "unknown",
        (source in _SLOW_SOURCES, WARN,
         f"{source}: slow to read; a 1 kHz cycle reads it several times",
         "boot with tsc=reliable, or switch the machine's power saving off in its BIOS")
    )  # fmt: skip


def realtime() -> list[Finding]:
    """What the kernel allows; tried in a thread that ends at once."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = soft == resource.RLIM_INFINITY or os.geteuid() == 0
    is_realtime = kernel_text(Path("/sys/kernel/realtime")) == "1"
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return [
        check_realtime_priority(_priority_error()),
        check_locked_memory(None if unlimited else soft),
        check_kernel(os.uname().release, is_realtime or "PREEMPT_RT" in os.uname().version),
        check_processor(len(os.sched_getaffinity(0)), kernel_text(governor)),
    ]


def check_realtime_priority(error: str) -> Finding:
    """Whether nodes may be given fixed priorities; `error` is why not."""
    return judged("real-time priority", f"up to {HIGHEST_PRIORITY} permitted",
        (error, WARN, f"refused: {error}; under load cycles will be missed",
         "add '@realtime - rtprio 90' to /etc/security/limits.conf, yourself to group realtime "
         "and log in again")
    )  # fmt: skip


def check_locked_memory(allowed: int | None) -> Finding:
    """Whether memory may be locked against swapping: how much [byte], None for any."""
    return judged("locked memory", "unlimited",
        (allowed is not None, WARN, f"{(allowed or 0) / 2**20:.0f} MiB",
         "add '@realtime - memlock unlimited' to /etc/security/limits.conf and log in again")
    )  # fmt: skip


def check_kernel(release: str, preempt_rt: bool) -> Finding:
    """Whether the kernel is a real-time one."""
    return judged("kernel", f"{release}, PREEMPT_RT",
        (not preempt_rt, WARN,
         f"{release}: not a real-time one; rare wake-ups come milliseconds late",
         "sudo apt install linux-image-rt-amd64  (Debian) and boot it")
    )  # fmt: skip


def check_processor(cores: int, governor: str) -> Finding:
    """Whether there are cores enough for this process, at full speed."""
    return judged("processor", f"{cores} cores" + (f", {governor}" if governor else ""),
        (cores < 2, WARN, "one core for five nodes",
         "give this process more cores: taskset, or the container's settings"),
        (governor in ("powersave", "conservative"), WARN,
         f"governor {governor}: slow after every pause",
         "sudo cpupower frequency-set -g performance")
    )  # fmt: skip


def space(directory: Path) -> list[Finding]:
    """The disk that holds a directory, which need not be there yet, and shared memory."""
    there, shared = existing(directory), Path("/dev/shm")
    segments = sum(1 for _ in shared.glob("*fastrtps*")) if shared.is_dir() else 0
    shared_free = shutil.disk_usage(shared).free if shared.is_dir() else 0
    return [
        check_disk(str(directory), shutil.disk_usage(there).free, os.access(there, os.W_OK)),
        check_shared_memory(segments, shared_free),
    ]


def check_disk(directory: str, free: int, writable: bool) -> Finding:
    """Whether a run can be recorded; `free` in bytes."""
    hours = free / RECORDING_RATE / 3600
    room = f"{free / 1e9:.1f} GB free in {directory}: {hours:.1f} h of recording"
    return judged("disk", room,
        (not writable, FAIL, f"{directory}: not writable",
         f"sudo chown $USER {directory}, or another directory with --results"),
        (free < LEAST_SPACE, FAIL, room, f"remove old runs below {directory}"),
        (free < LITTLE_SPACE, WARN, room, f"remove old runs below {directory}")
    )  # fmt: skip


def check_shared_memory(segments: int, free: int) -> Finding:
    """Whether dead nodes have left shared memory full: their readers lock up on it."""
    mend = "stop all nodes, then: rm /dev/shm/*fastrtps*"
    return judged("shared memory", f"{segments} segments of DDS, {free / 1e6:.0f} MB free",
        (free < 16e6, WARN, f"{free / 1e6:.0f} MB free in /dev/shm: nodes will not start", mend),
        (segments > 200, WARN,
         f"{segments} segments of DDS: most are of nodes that were killed", mend)
    )  # fmt: skip


def existing(path: Path) -> Path:
    """The path or the nearest directory above it that is there."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def kernel_text(path: Path) -> str:
    """Content of a small file of the kernel; empty where there is none."""
    try:
        return path.read_text().strip()
    except OSError:  # carrier of an adapter that is down, too
        return ""


def _synchronised() -> bool | None:
    """What the kernel says of its clock; asks only, so everybody may."""
    answer = -1
    with suppress(AttributeError, OSError):
        answer = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if answer < 0 else answer != _TIME_ERROR


def _priority_error() -> str:
    """Why a thread cannot have `HIGHEST_PRIORITY`; empty if it can."""
    said: list[str] = []

    def attempt() -> None:
        try:  # 0 is the calling thread
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(HIGHEST_PRIORITY))
        except OSError as error:
            said.append(error.strerror or str(error))

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return said[0] if said else ""
