"""`softcr experiment apcc-robot1 | apcc-robot2`: adaptive against fixed, 10 setpoints x 3 payloads.

Both robots are reconstructions, their numbers stand in config/robots. So absolute figures mean
little; the sign of a change is what is compared. What the thesis leaves open is filled in like this
(docs/constant_curvature.md tells why):

- the tendons' loops act in configuration space;
- the secondary objective descends Psi itself, as (16) and (50) are printed, with a gain of 1 m/s;
- the Jacobian is taken at the inferred configuration: with the commanded one, which stands far
  from the arm's, even fixed lengths do worse ("commanded q" below);
- the printed gains of the adaptation make lengths run into their bounds within a second when the
  setpoint is half a metre away. They are shown, and beside them what they would come to if the
  thesis's filter did not divide by its time step: Gamma times 1 ms, or times 20 ms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softcr_control.apcc import ApccSettings
from softcr_models.constant_curvature.arm import Arm
from softcr_models.constant_curvature.arm_dynamics import TendonGains
from softcr_models.robot import load_arm
from softcr_tools.experiments.apcc.robot_run import RobotTrace, Setting, run_robot

PAYLOADS = (0.0, 0.25, 0.5)
LOOPS = TendonGains(space="configuration")
FIXED = "fixed lengths"
COMMANDED, COARSE = "fixed, commanded q", "A-PCC, Γ / 50"
AT_NAMED = (COARSE, COMMANDED)
"""Controllers that are tried at the named setpoint alone."""


@dataclass(frozen=True)
class Study:
    """One robot with one kind of feedback.

    Attributes:
        case: in the table.
        robot: in config/robots.
        named: the setpoint the thesis names; it comes first, with the largest payload it is R8.
        gain: K [1/s].
        adaptation: the printed Gamma [1/m].
        feedback: what Algorithm 2 is given.
        shape: numbers among PUBLISHED of E_shape's mean, lower and upper bound.
        cost: those of Psi.
        single: the number of the named run; None: there is none.
    """

    case: str
    robot: str
    named: tuple[float, float, float]
    gain: float
    adaptation: float
    feedback: str
    shape: tuple[str, str, str]
    cost: tuple[str, str, str]
    single: str | None = None


_FAR = (0.325, 0.15, -0.275)
STUDIES = {
    "apcc-robot1": (
        Study("I, positions", "dalenberg_robot1", _FAR, 1.8, 40.5, "position",
              ("R2", "R3", "R4"), ("R5", "R6", "R7")),
        Study("II, poses", "dalenberg_robot1", _FAR, 1.8, 24.5, "pose",
              ("R12", "R13", "R14"), ("R15", "R15 lower", "R15 upper"), "R8"),
    ),
    "apcc-robot2": (
        Study("poses", "dalenberg_robot2", (0.15, 0.225, -0.1875), 1.5, 18.5, "pose",
              ("R16", "R17", "R18"), ("R19", "R19 lower", "R19 upper")),
    ),
}  # fmt: skip


def laws(study: Study) -> dict[str, ApccSettings]:
    """The controllers of a study by their names in the table, the fixed rival first."""

    def law(scale: float, state: str = "inferred") -> ApccSettings:
        return ApccSettings.model_validate(
            {
                "gain": study.gain,
                "jacobian_state": state,
                "objective": "norm",
                "adaptation": {"gains": (scale * study.adaptation,)},
                "inference": {"feedback": study.feedback},
            }
        )

    return {
        FIXED: law(0.0),
        "A-PCC, Γ printed": law(1.0),
        "A-PCC, Γ / 1000": law(0.001),
        COARSE: law(0.02),
        COMMANDED: law(0.0, "commanded"),
    }


def setpoints(study: Study, arm: Arm, count: int, seed: int) -> np.ndarray:
    """(count, 3) the named setpoint, and tips of random shapes without elongation [m]."""
    random = np.random.default_rng(seed)
    found = [np.array(study.named)]
    while len(found) < count:
        direction = random.uniform(0.0, 2.0 * np.pi)
        directions = direction + random.normal(0.0, 0.3, len(arm.racks))
        bends = random.uniform(0.1, 0.6, len(arm.racks))
        shape = np.stack([bends * np.cos(directions), bends * np.sin(directions), 0.0 * bends])
        found.append(arm.model.position(shape.T.ravel(), arm.model_lengths))
    return np.array(found)


def settings_of(study: Study, count: int, seeds: int, seconds: float) -> list[Setting]:
    """All setpoints with all payloads; the named one with the largest payload comes first."""
    arm = load_arm(study.robot)
    return [
        Setting(arm, payload, target, LOOPS, seconds)
        for seed in range(seeds)
        for target in setpoints(study, arm, count, seed)
        for payload in PAYLOADS[::-1]
    ]


def run_study(
    study: Study, settings: Sequence[Setting], tick: Callable[[], None]
) -> dict[str, list[RobotTrace]]:
    """Every controller in every setting; the two last ones at the named setpoint alone."""
    return {
        name: [run_robot(each, law, tick) for each in _asked(name, settings)]
        for name, law in laws(study).items()
    }


def runs_of(study: Study, settings: Sequence[Setting]) -> int:
    """How many runs that is."""
    return sum(len(_asked(name, settings)) for name in laws(study))


def _asked(name: str, settings: Sequence[Setting]) -> Sequence[Setting]:
    return settings[: len(PAYLOADS)] if name in AT_NAMED else settings
