"""Numbers of a training, by algorithm."""

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.learning.rewards import BETA

Algorithm = Literal["td3", "ddpg", "sac", "ppo", "gps", "fitted_gps", "gradient"]

ROUNDS = ("gps", "fitted_gps", "gradient")
"""Algorithms of our own, which move rods, take derivatives and learn in turns."""


class TrainingSettings(BaseModel):
    """How a policy is trained; the defaults are those of TD3 and DDPG."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    algorithm: Algorithm = Field(
        "td3", description="td3, ddpg, sac, ppo: of stable-baselines3; gps, fitted_gps: guided "
        "policy search with exact or fitted derivatives; gradient: gradient through the rods' "
        "derivatives",
    )  # fmt: skip
    samples: int = Field(100_000, ge=100, description="total number of steps of the environment")
    seed: int = Field(0, ge=0, description="seed of goals, weights and noise")
    environments: int = Field(64, ge=1, le=65536, description="number of rods at a time")
    hidden: tuple[int, ...] = Field((128, 128), description="widths of the networks' layers")
    learning_rate: float = Field(1e-3, gt=0.0, le=0.1, description="learning rate at the start")
    last_rate: float = Field(
        0.1, gt=0.0, le=1.0, description="learning rate at the end, relative to that at the start"
    )
    beta: float = Field(
        BETA, gt=0.0, le=1.0, description="distance beyond which all tips are equally bad, "
        "relative to the robot's length; larger if goals are far away",
    )  # fmt: skip
    discount: float = Field(0.98, gt=0.0, lt=1.0, description="discount of later rewards per step")
    batch: int = Field(256, ge=1, le=1_000_000, description="number of samples in an update")
    updates: int = Field(
        16,
        ge=1,
        le=10_000,
        description="number of updates of the networks per step of all environments",
    )
    noise: float = Field(
        0.6,
        ge=0.0,
        le=2.0,
        description="standard deviation of the noise on actions during training; actions are from "
        "-1 to 1",
    )
    start: int = Field(
        5000, ge=0, description="number of samples with random inputs, each held for 5 to 10 "
        "steps, before training begins",
    )  # fmt: skip
    buffer: int = Field(200_000, ge=1000, description="number of samples that are kept")
    entropy: float = Field(0.01, ge=0.0, le=10.0, description="weight of SAC's entropy")
    rollout: int = Field(
        25,
        ge=1,
        le=10_000,
        description="number of steps between PPO's updates; a divisor of a run's steps",
    )
    epochs: int = Field(5, ge=1, le=1000, description="number of PPO's passes through a rollout")
    directions: int = Field(
        16, ge=4, le=64, description="number of directions of motion in which gps, fitted_gps and "
        "gradient know the response of the rods",
    )  # fmt: skip
    passes: int = Field(
        2, ge=1, le=20, description="number of improvements of gps's motions in a round"
    )
    anchor: float = Field(
        0.3, gt=0.0, le=100.0, description="weight of the network's actions in the costs of gps's "
        "local controllers at the start",
    )  # fmt: skip
    last_anchor: float = Field(0.03, gt=0.0, le=100.0, description="the same weight at the end")
    memory: int = Field(10, ge=1, le=1000, description="number of rounds that gps remembers")
    around: float = Field(
        0.1, ge=0.0, le=1.0, description="distance from motions at which gps's network is also "
        "fitted, relative to the deviation of motions under random inputs",
    )  # fmt: skip
    siblings: int = Field(
        6,
        ge=2,
        le=64,
        description="number of motions of a round towards the same goal, for fitted_gps",
    )
    clusters: int = Field(
        12, ge=1, le=100, description="number of clusters of the dynamics' prior, for fitted_gps"
    )
    horizon: int = Field(
        16,
        ge=1,
        le=10_000,
        description="number of steps over which costs are carried back, for gradient",
    )

    @model_validator(mode="after")
    def _siblings_share_a_round(self) -> "TrainingSettings":
        if self.algorithm == "fitted_gps" and self.environments % self.siblings:
            raise ValueError(
                f"environments {self.environments}: must be a multiple of {self.siblings}, the "
                "siblings"
            )
        return self

    @classmethod
    def of(cls, algorithm: str, **given: Any) -> "TrainingSettings":
        """The defaults of an algorithm, with some numbers replaced.

        Raises:
            UserError: there is no such algorithm.
        """
        if algorithm not in get_args(Algorithm):
            known = ", ".join(get_args(Algorithm))
            raise UserError(f"algorithm {algorithm!r}: allowed are {known}")
        own = {"algorithm": algorithm, **_OWN.get(algorithm, {})}
        return cls(**(own | given))


_GUIDED: dict[str, Any] = {"environments": 48, "batch": 512, "updates": 300, "noise": 0.2}
_OWN: dict[str, dict[str, Any]] = {
    "ppo": {
        "environments": 1024, "hidden": (64, 64), "batch": 6400, "samples": 4_000_000, "start": 0,
    },
    "gps": _GUIDED,
    "fitted_gps": _GUIDED | {"samples": 250_000},
    "gradient": _GUIDED | {"updates": 100, "noise": 0.1, "samples": 250_000},
}  # fmt: skip
