"""The `softcr` command: one app, whose commands are imported when they are run."""

import importlib.metadata
import sys
from collections.abc import Sequence

from softcr_runtime.command_line import new_app, run
from softcr_tools.old_commands import mount

app = new_app(
    "softcr",
    "Estimation and predictive control of soft continuum robots. softcr COMMAND --help tells more.",
    version=lambda: f"softcr {importlib.metadata.version('softcr')}",
    version_flags=["--version"],
)

_COMMANDS = (
    ("up", "softcr_tools.up:app", "start a system of nodes, record it, report on it"),
    ("report", "softcr_tools.report:report", "compute the report of a recorded run again"),
    ("replay", "softcr_tools.replay.command:replay", "run estimator and controller again on a recorded run"),
    ("view", "softcr_tools.viewer.command:view", "watch the running system on a browser page"),
    ("hold", "softcr_tools.hold:hold", "be the deadman's switch: the terminal's space bar"),
    ("doctor", "softcr_tools.doctor.command:doctor", "say what stands in the way of a run and what mends it"),
    ("plan", "softcr_tools.plan:plan", "turn a tip path into a motion the rod can do"),
    ("emulate", "softcr_tools.emulate:app", "play a device of the bench on its real protocol"),
    ("rehearse", "softcr_tools.rehearse:rehearse", "run the bench's system on emulated devices"),
    ("train", "softcr_tools.surrogate.train:train", "train the surrogate of a robot"),
    ("verify-surrogate", "softcr_tools.surrogate.verify:verify_surrogate", "judge a surrogate by its rod"),
    ("study", "softcr_studies.command:app", "run published experiments, tuning, benchmarks again"),
)

for _order, (_name, _place, _text) in enumerate(_COMMANDS):
    app.command(_place, name=_name, help=_text, sort_key=_order)
mount(app)
app.register_install_completion_command(help="install completion for bash, zsh or fish")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 good, 1 the run failed, 2 a mistake of the user, 130 interrupted.
    """
    return run(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
