"""Trainings by learners of our own, which learn in rounds: judged and told as all others.

Learning through derivatives: actions go down the cost of their motions, and the network follows.

The rods' derivatives carry the cost of a motion back to every action of it, in horizons that end as
those of Xu et al. (2022) do; actions are the network's at every step, so what they change in later
observations counts. A round moves the actions of some motions a little way down, and fits the
network to them; single steps of the network along the gradient would hardly use each motion. The
cost is that of the guided search, the derivatives are those of `linearisation`.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from softcr_papers.pawlowski2019.learning.evaluation import Figures, Judgement, judge
from softcr_papers.pawlowski2019.learning.fitted_search import FittedSearch
from softcr_papers.pawlowski2019.learning.guided import GuidedSearch
from softcr_papers.pawlowski2019.learning.judging import FRESH, Judging, Report, Trained
from softcr_papers.pawlowski2019.learning.linearisation import Linearisation
from softcr_papers.pawlowski2019.learning.motion_learner import MotionLearner, policy_slopes
from softcr_papers.pawlowski2019.learning.motions import Motions
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.regression import Targets
from softcr_papers.pawlowski2019.learning.run_directory import claim
from softcr_papers.pawlowski2019.learning.tasks import Task
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings
from softcr_papers.pawlowski2019.policy.policy_file import Policy, load_policy, save_policy
from softcr_studies.frame import checkpoints

_STEP = 0.3
"""By which the action of a motion moves whose gradient is the largest."""


class GradientSearch(MotionLearner):
    """Learning through derivatives, round by round; see `MotionLearner`."""

    def round(self) -> None:
        """Moves actions of new motions against the exact gradient of their costs."""
        own, network = self.settings, self.network
        motions = self.explored(network, self.episodes())
        self.reached = self.share(motions)
        linear = self.linearised(motions)
        pull = self.weights(motions)[:, :, None] * np.where(
            motions.done[:, :, None], motions.errors, 0.0
        )
        slopes = policy_slopes(network, motions, linear)
        by_action = action_gradients(linear, pull, slopes, own.horizon)
        self.memory.append(_moved(motions, linear, by_action))
        self.regression.slow_down(1.0 + (own.last_rate - 1.0) * self.progress)
        self.regression.fit(Targets.joined(self.memory), own.updates, own.batch, 0.0)


def _moved(motions: Motions, linear: Linearisation, by_action: np.ndarray) -> Targets:
    """Actions a step down, each as important as its gradient."""
    sizes = np.abs(by_action).max(axis=2)
    share = sizes / np.maximum(sizes.max(axis=1, keepdims=True), 1e-12)
    direction = by_action / np.maximum(sizes.max(axis=1), 1e-12)[:, None, None]
    wanted = np.clip(motions.actions - _STEP * direction, -1.0, 1.0)
    done, size = motions.done, motions.actions.shape[2]
    weights = share[done][:, None, None] * np.eye(size)
    seen_by = np.zeros_like(linear.seen[done])
    actions_by = np.zeros((len(seen_by), size, seen_by.shape[2]), np.float32)
    return Targets(
        motions.seen[done], wanted[done].astype(np.float32), seen_by, actions_by,
        weights.astype(np.float32),
    )  # fmt: skip


def action_gradients(
    linear: Linearisation, pull: np.ndarray, slopes: np.ndarray, horizon: int
) -> np.ndarray:
    """(B, T, m) of the cost of motions by their actions, where later actions answer the state.

    Args:
        linear: of the motions.
        pull: (B, T, 3) derivative of the cost by the tip at the end of each step.
        slopes: (B, T, m, r) of actions by coordinates.
        horizon: steps over which a cost is carried back; longer ones are left out.
    """
    steps = pull.shape[1]
    found = np.zeros(slopes.shape[:3])
    # what a state's coordinates do to costs, of which the ones further ahead than the horizon go
    ahead: list[np.ndarray] = []
    for t in range(steps - 1, -1, -1):
        now = np.einsum("bij,bi->bj", linear.tips[:, t], pull[:, t])
        ahead = [now, *ahead][:horizon]
        stacked = np.stack(ahead)
        by_action = np.einsum("bij,kbi->kbj", linear.control[:, t], stacked)
        found[:, t] = by_action.sum(axis=0)
        back = np.einsum("bij,kbi->kbj", linear.transition[:, t], stacked)
        back += np.einsum("bij,kbi->kbj", slopes[:, t], by_action)
        ahead = list(back)
    return found


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
