"""The study of random robots: what became of one, from what the command said and left behind."""

import json
import math
import signal

import numpy as np
import pytest
from kit.bags import pose_stamped, ticks, write_bag

from softcr_studies.robustness import random_robots
from softcr_studies.robustness.random_robots import outcome

BEGUN = "on virtual time; computing [ms]: controller 5"
WARNED = "robot random3 may fall and not be followed: it does not stay at rest"


def left_behind(folder, verdict="good: 0.1 mm", ended_by="duration", off=0.0):
    """Summary and bag of a run of 0.1 s whose tip is `off` [m]."""
    bag = [
        ("simulation/truth/tip/pose", stamp, pose_stamped(stamp, np.array([off, 0.0, 0.1])))
        for stamp in ticks(0.1)
    ]
    write_bag(folder / "bag", bag)
    summary = {
        "verdict": {"line": verdict, "good": verdict.startswith("good")},
        "ended_by": ended_by, "tip_aed_percent_of_length": 2.5,
    }  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(summary))


@pytest.mark.parametrize(("said", "code", "left", "found"), [
    (["softcr: error: robot random3: it cannot bear its weight"], 2, None,
     "refused before the start"),
    ([BEGUN, "softcr: error: the estimator cannot be made"], 2, None, "stopped"),
    ([BEGUN, "Traceback (most recent call last):", "KeyError: 3"], 1, None, "traceback"),
    (["interrupted"], 130, None, "not begun when the time was over"),
    ([BEGUN], -9, None, "never ended"),
    ([BEGUN], 0, {}, "tracks"),
    ([BEGUN], 0, {"ended_by": "interrupt"}, "tracks until the time was over"),
    ([BEGUN], 0, {"verdict": "NOT good: 40 mm"}, "NOT good without a word before the start"),
    ([WARNED, BEGUN], 0, {"verdict": "NOT good: 40 mm"}, "NOT good, and told so before the start"),
    ([WARNED, BEGUN], 0, {}, "tracks"),
    ([BEGUN], 1, {"verdict": "NOT good: the plant diverged"}, "stopped"),
    ([WARNED, BEGUN], 0, {"off": math.nan}, "not a number"),
])  # fmt: skip
def test_what_became_of_a_robot_is_told_from_what_the_command_said(
    tmp_path, said, code, left, found
):
    if left is not None:
        left_behind(tmp_path, **left)
    told = outcome("\n".join([*said, ""]), code, tmp_path)
    assert told["found"] == found
    assert told["note"].startswith(found)
    assert "random3" not in told["note"]
    assert math.isnan(told["share"]) == (left is None)


@pytest.fixture
def in_the_background():
    """As a shell's script starts a program: interrupts are ignored, and its children do so, too."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("in_the_background")
def test_a_run_that_takes_too_long_is_ended_as_by_a_person(monkeypatch):
    """The seconds are those of the processor, and one that does not end is killed."""
    ignored = "signal.signal(2, signal.SIG_IGN);"
    for program, longest, code in (("", 60.0, 130), (ignored, 0.3, -9)):
        told = (
            f"import signal, sys\n{program}\nprint('begun', flush=True)\n"
            "try:\n    while True: sum(range(99))\nexcept KeyboardInterrupt: sys.exit(130)\n"
        )
        monkeypatch.setattr(random_robots, "_NEVER_ENDED", longest)
        monkeypatch.setattr(random_robots, "_PROGRAM", ("-c", told))
        said, found, spent = random_robots._told([], 0.3)
        assert (said, found) == ("begun\n", code)
        assert spent > 0.3
