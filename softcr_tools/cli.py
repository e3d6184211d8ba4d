"""The `softcr` command: one app, whose commands are imported when they are run."""

import sys
from collections.abc import Sequence

from softcr_runtime.command_line import new_app, run
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
    "up": ("tools.up:app", "start a system of nodes, record it, report on it"),
    "report": ("tools.report:report", "compute the report of a recorded run again"),
    "replay": ("tools.replay.command:replay", "run estimator and controller again on a bag"),
    "view": ("tools.viewer.command:view", "watch the running system on a browser page"),
    "hold": ("tools.hold:hold", "be the deadman's switch: the terminal's space bar"),
    "doctor": ("tools.doctor.command:doctor", "say what stands in the way of a run"),
    "commission": ("tools.commission.command:commission", "measure a bench, write its files"),
    "ros": ("tools.ros.command:app", "run, nodes, lifecycle, topics, echo, call, param"),
    "plan": ("tools.plan:plan", "turn a tip path into a motion the rod can do"),
    "identify": ("tools.identify:identify", "find parameters in recordings (shapes: learn strain)"),
    "emulate": ("tools.emulate:app", "play a device of the bench on its real protocol"),
    "rehearse": ("tools.rehearse:rehearse", "run the bench's system on emulated devices"),
    "train": ("tools.train:train", "train the surrogate of a robot"),
    "verify-surrogate": ("studies.verify_surrogate:verify_surrogate", "judge it beside its rod"),
    "study": ("studies.command:app", "run published experiments, tuning, benchmarks"),
}

for _order, (_name, (_place, _text)) in enumerate(_COMMANDS.items()):
    app.command(f"softcr_{_place}", name=_name, help=_text, sort_key=_order)
for _name, (_place, _text) in ROS_COMMANDS.items():  # in one line of the list, which fits a screen
    app.command(f"softcr_tools.{_place}", name=_name, help=_text, show=False)
app.command(
    "softcr_tools.learn:app",
    name="learn",
    help="learn a strain model from the motion of a shape, or how to repeat a motion",
    show=False,  # the line of `identify` names it: the list fits a screen
)
app.register_install_completion_command(help="install completion for bash, zsh or fish")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 good, 1 the run failed, 2 a mistake of the user, 130 interrupted.
    """
    return run(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
