"""Trainings by learners of our own, which learn in rounds: judged and told as all others."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from softcr_papers import checkpoints
from softcr_papers.pawlowski2019.learning.evaluation import Figures, Judgement, judge
from softcr_papers.pawlowski2019.learning.fitted_search import FittedSearch
from softcr_papers.pawlowski2019.learning.gradient import GradientSearch
from softcr_papers.pawlowski2019.learning.guided import GuidedSearch
from softcr_papers.pawlowski2019.learning.judging import FRESH, Judging, Report, Trained
from softcr_papers.pawlowski2019.learning.motion_learner import MotionLearner
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.run_directory import claim
from softcr_papers.pawlowski2019.learning.tasks import Task
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings
from softcr_papers.pawlowski2019.policy.policy_file import Policy, load_policy, save_policy

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
    """As `training.train`: a run that was stopped goes on where it was last judged.

    Raises:
        UserError: the plant's inputs follow their commands late, or the run's directory holds a
            checkpoint of other settings, or one that cannot be read.
    """
    begin = time.process_time()
    learner = _LEARNERS[settings.algorithm](plant, task, settings)
    far = _Progress(_policy(learner, None, 0.0, judging))
    if run is not None:
        file, best = claim(run, settings), run / "policy"

        def go_on(state: dict[str, Any]) -> None:
            learner.go_on(state["learner"])
            far.go_on(state["progress"], load_policy(best))

        checkpoints.resume(file, go_on)
    every = judging.every or settings.samples
    following = (learner.samples // every + 1) * every if far.history else every
    while not far.history or learner.samples < settings.samples:
        learner.round()
        far.seconds += time.process_time() - begin
        show(Report(learner.samples, far.seconds, far.best))
        if learner.samples >= min(following, settings.samples):
            following += every
            found = judge(
                learner.network, judging.plant, judging.task, judging.runs,
                settings.seed + FRESH + len(far.history),
            )  # fmt: skip
            far.history.append(Report(learner.samples, far.seconds, found))
            if far.best is None or judging.better(found.figures, far.best.figures):
                far.best = found
                far.policy = _policy(learner, found.figures, far.seconds, judging)
                if run is not None:
                    save_policy(far.policy, best)
            if run is not None:
                checkpoints.save(file, {"learner": learner.state, "progress": far.state})
            if judging.enough(found.figures):
                break
        begin = time.process_time()
    return Trained(far.policy, far.history)


@dataclass(eq=False)
class _Progress:
    """What is known of a training beside its learner.

    Attributes:
        policy: the best, by its judgements; before the first one, that of the start.
        history: of all judgements.
        best: of them.
        seconds: of processor time, without judgements.
    """

    policy: Policy
    history: list[Report] = field(default_factory=list)
    best: Judgement | None = None
    seconds: float = 0.0

    @property
    def state(self) -> dict[str, Any]:
        """All that is told here but the policy, which is a file of its own."""
        history = [{**vars(each), "judgement": vars(each.judgement)} for each in self.history]
        best = next(i for i, each in enumerate(self.history) if each.judgement is self.best)
        return {"history": history, "best": best, "seconds": self.seconds}

    def go_on(self, state: dict[str, Any], policy: Policy) -> None:
        """As the progress that had this state, and this policy as its best.

        Raises:
            LookupError, TypeError, ValueError: it is no such state.
        """
        for each in state["history"]:
            samples, seconds = int(each["samples"]), float(each["seconds"])
            self.history.append(Report(samples, seconds, Judgement(**each["judgement"])))
        self.best = self.history[state["best"]].judgement
        self.seconds, self.policy = float(state["seconds"]), policy


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
