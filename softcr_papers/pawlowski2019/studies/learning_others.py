"""The tasks of Pawlowski (2019), Sec. 4.4.3, by algorithms that the thesis does not have.

TD3, SAC and PPO are those of stable-baselines3; "gradient" carries costs back through the rods'
derivatives. All else is that of the study `pawlowski2019/learning`.
"""

from dataclasses import replace

from softcr_papers.pawlowski2019.studies import learning

STUDY = replace(
    learning.STUDY,
    name="pawlowski2019/learning-others",
    summary="the tasks of pawlowski2019/learning by algorithms that the thesis does not have",
    cases=(learning.POINT, learning.ANY, learning.TRACK),
    methods=lambda case: ("TD3", "gradient", "SAC", "PPO") if case == learning.ANY else ("TD3",),
    about={
        "figures of the thesis": "those beside TD3 are of its DDPG",
        "SAC and PPO": "SAC has a fixed weight of 0.01 on entropy; PPO 1024 rods, networks of 64 "
        "and 64, rollouts of 25 steps, batches of 6400, 5 passes",
    },
    further_rows=None,
)
