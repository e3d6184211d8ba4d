"""Trainings by learners of our own, which learn in rounds: judged and told as all others."""

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from softcr_control.policy.policy_file import Policy, save_policy
from softcr_learning.policy.evaluation import Figures, judge
from softcr_learning.policy.fitted_search import FittedSearch
from softcr_learning.policy.gradient import GradientSearch
from softcr_learning.policy.guided import GuidedSearch
from softcr_learning.policy.judging import FRESH, Judging, Report, Trained
from softcr_learning.policy.motion_learner import MotionLearner
from softcr_learning.policy.plant import Plant
from softcr_learning.policy.tasks import Task
from softcr_learning.policy.training_settings import TrainingSettings

_LEARNERS: dict[str, type[MotionLearner]] = {
    "gps": GuidedSearch,
    "fitted_gps": FittedSearch,
    "gradient": GradientSearch,
}


def train_in_rounds(
    plant: Plant,
    task: Task,
    settings: TrainingSettings,
    judging: Judging,
    run: Path | None = None,
    show: Callable[[Report], None] = lambda report: None,
) -> Trained:
    """As `training.train`. It takes a minute or two, and begins afresh if it is stopped.

    Raises:
        UserError: the plant's inputs follow their commands late.
    """
    begin = time.process_time()
    learner = _LEARNERS[settings.algorithm](plant, task, settings)
    history: list[Report] = []
    best, seconds, following = None, 0.0, judging.every or settings.samples
    policy = _policy(learner, None, seconds, judging)
    while True:
        learner.round()
        seconds += time.process_time() - begin
        over = learner.samples >= settings.samples
        show(Report(learner.samples, seconds, best))
        if over or learner.samples >= following:
            following += judging.every or settings.samples
            found = judge(
                learner.network, judging.plant, judging.task, judging.runs,
                settings.seed + FRESH + len(history),
            )  # fmt: skip
            history.append(Report(learner.samples, seconds, found))
            if best is None or judging.better(found.figures, best.figures):
                best = found
                policy = _policy(learner, found.figures, seconds, judging)
                if run is not None:
                    save_policy(policy, run / "policy")
            over |= judging.enough(found.figures)
        if over:
            return Trained(policy, history)
        begin = time.process_time()


def _policy(
    learner: MotionLearner, found: Figures | None, seconds: float, judging: Judging
) -> Policy:
    """The policy of this moment, with how it was learned."""
    seen, plant = learner.observation, learner.plant
    told = {
        "settings": learner.settings.model_dump(mode="json"),
        "plant": plant.settings.model_dump(mode="json"),
        "samples": learner.samples,
        "derivative_lanes": learner.lanes,
        "processor_seconds": round(seconds, 1),
        "judged_on": judging.plant.settings.model_dump(mode="json"),
        "judged": asdict(found) if found else {},
    }
    return Policy.of(
        learner.network, seen.layout, plant.settings.period, learner.task.name, told,
        of_goal_velocity=seen.of_goal_velocity, of_inputs=seen.of_inputs,
    )  # fmt: skip
