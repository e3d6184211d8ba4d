"""The `softcr` command: one app, whose commands are imported when they are run."""

import os
import sys
from collections.abc import Sequence

from cyclopts import Group

from softcr_runtime.settings.command_line import declared_commands, new_app, run
from softcr_tools.ros import COMMANDS as ROS_COMMANDS


def _version() -> str:
    from importlib.metadata import version

    return f"softcr {version('softcr')}"


app = new_app(
    "softcr",
    "Estimation and predictive control of soft continuum robots.",
    version=_version,
    version_flags=["--version"],
)

_COMMANDS = {
    "up": ("softcr_tools.running.up:app", "run a closed loop, record it, write a report"),
    "report": ("softcr_tools.report:report", "compute the report of a recorded run again"),
    "replay": ("softcr_tools.replay.command:replay", "run estimator and controller again on a bag"),
    "view": ("softcr_tools.viewer.command:view", "watch the running system in a browser"),
    "hold": ("softcr_hardware.hold:hold", "use the terminal's space bar as the deadman's switch"),
    "doctor": ("softcr_tools.doctor.command:doctor", "find what would prevent a run, and the fix"),
    "commission": (
        "softcr_hardware.commissioning.command:commission",
        "find mistakes of a bench, write its files",
    ),
    "plan": ("softcr_tools.plan:plan", "turn a tip path into a motion the rod can do"),
    "identify": ("softcr_tools.identify:identify", "find a robot's parameters in recordings"),
    "learn": ("softcr_tools.learn:app", "learn a strain model, a policy or a repeated motion"),
    "emulate": ("softcr_hardware.emulation.command:app", "emulate a device of the bench"),
    "rehearse": (
        "softcr_tools.running.rehearse:rehearse",
        "run the bench's system on emulated devices",
    ),
    "study": ("softcr_studies.frame.command:app", "run published experiments, tunings, benchmarks"),
}

for _order, (_name, (_place, _text)) in enumerate(_COMMANDS.items()):
    app.command(_place, name=_name, help=_text, sort_key=_order)
for _name, (_place, _text) in declared_commands("softcr", _COMMANDS).items():
    app.command(_place, name=_name, help=_text, sort_key=len(_COMMANDS))
_OF_NODES = Group("Running nodes, without the ros2 command", sort_key=1)
for _order, (_name, (_place, _text)) in enumerate(ROS_COMMANDS.items()):
    app.command(f"softcr_tools.{_place}", name=_name, help=_text, group=_OF_NODES, sort_key=_order)
app.register_install_completion_command(help="install completion for this shell, or --shell NAME")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 good, 1 the run failed, 2 a mistake of the user, 130 interrupted.
    """
    # read once, when OpenMP is loaded: its threads would wait for each other on busy cores by
    # counting: a run on virtual time beside two busy processes took 27 s, and takes 16 without
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return run(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
