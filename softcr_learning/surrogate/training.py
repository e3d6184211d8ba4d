"""Training of a network: data from the rod, losses, stages, checkpoints."""

import csv
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch

from softcr_learning.surrogate.losses import (
    PhysicsLoss,
    chosen,
    chosen_samples,
    loop_error,
    marks_error,
)
from softcr_learning.surrogate.rod_residual import RodResidual
from softcr_learning.surrogate.shape_fit import fit_shapes
from softcr_learning.surrogate.training_data import (
    Physics,
    RodData,
    Samples,
    Windows,
    box_points,
    coordinates_of,
    encoded_steps,
    ends_of_steps,
    rod_data,
)
from softcr_learning.surrogate.training_settings import Stage, TrainingSettings
from softcr_learning.surrogate.validation import Validation
from softcr_models.devices import gpu_name, processor_name, resolve_device
from softcr_models.errors import UserError
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.parameters import PARAMETERS
from softcr_models.surrogate import files
from softcr_models.surrogate.card import Card, rod_fields
from softcr_models.surrogate.ddpinn import DDPINN, inputs_of
from softcr_models.surrogate.freed_memory import keep_freed_memory

WARM_UP = 300  # iterations until the learning rate is reached
FLOAT32_TAIL = 0.04  # part of the training at its end that is never in bfloat16
CHECKPOINT_EVERY = 60.0  # [s]
_LEAST_RATE = 1e-3  # of the learning rate
_UNIT = 100.0  # losses are squares of a few hundredths
_RIDGE = 1e-6


@dataclass(frozen=True)
class Progress:
    """How far a training is.

    Attributes:
        phase: what is being done.
        done: part of the phase.
        losses: the latest, by name.
        validation: the latest figures, by name.
    """

    phase: str
    done: float
    losses: dict[str, float]
    validation: dict[str, float]


Report = Callable[[Progress], None]


@dataclass(frozen=True, eq=False)
class _Data:
    windows: Windows
    noisy: Samples | None
    physics: tuple[PhysicsLoss, Physics] | None  # and its collocation points


def train(
    robot: Robot,
    settings: TrainingSettings,
    path: Path,
    report: Report = lambda _: None,
    resume: bool = True,
    start: Path | None = None,
    data: RodData | None = None,
) -> tuple[DDPINN, Card]:
    """Trains a network and writes it, its card, a log (CSV) and checkpoints beside `path`.

    Args:
        robot: what is learnt.
        settings: how.
        path: of the result, without ending.
        report: told about the progress.
        resume: whether to go on from a checkpoint of the same settings.
        start: a trained network to begin from, of the same structure, whose coordinates are kept.
        data: of the same robot and settings, where many networks share it; made if not given.

    Raises:
        UserError: a start that does not fit, settings that do not fit the robot, or losses that
            left the numbers.
    """
    keep_freed_memory()
    begun = time.monotonic()
    # numba's threads and torch's are one pool: whichever loop ran last has set its size
    numba.set_num_threads(min(settings.threads, numba.config.NUMBA_NUM_THREADS))
    torch.set_num_threads(settings.threads)
    rod = CosseratRod(robot, settings.intervals)
    begin = _checked_start(start, robot, settings) if start else (None, None)
    if data is None:
        data = rod_data(rod, settings, lambda phase, done: report(Progress(phase, done, {}, {})))
    network, prepared_data = _prepared(rod, data, settings, begin[0], report)
    validation = Validation(rod, settings)
    prepared = time.monotonic() - begun
    trainer = _Trainer(network, prepared_data, settings, path)
    if resume:
        trainer.resume()
    trainer.run(validation, report)
    figures = validation(network)
    report(Progress("done", 1.0, {}, figures))
    card = Card(
        robot=robot.name,
        rod=rod_fields(robot),
        relaxation_times=list(robot.relaxation_times),
        intervals=settings.intervals,
        architecture=network.architecture,
        inputs=network.inputs,
        training=settings.model_dump(mode="json"),
        hardware=hardware(settings),
        seconds={"data": round(prepared, 1), "training": round(trainer.seconds, 1)},
        iterations=trainer.iteration,
        validation=figures,
        start=begin[1],
    )
    network.on(torch.device("cpu"))
    files.save(network, card, path)
    trainer.checkpoint_path.unlink(missing_ok=True)
    return network.eval().requires_grad_(False), card


def hardware(settings: TrainingSettings) -> dict[str, str]:
    """What it runs on, for cards and reports."""
    return {
        "processor": processor_name(),
        "threads": str(settings.threads),
        "torch": torch.__version__,
        "gpu": gpu_name() if resolve_device(settings.device, "torch") == "cuda" else "",
        "bfloat16 units": str(_bfloat16_pays()),
    }


def _prepared(
    rod: CosseratRod,
    data: RodData,
    settings: TrainingSettings,
    start: DDPINN | None,
    report: Report,
) -> tuple[DDPINN, _Data]:
    motions = data.motions
    network = _new_network(rod, settings)
    if start is None:
        coordinates = coordinates_of(motions, settings)
        network.set_coordinates(coordinates, rod)
        if network.architecture.shapes == "shared":
            report(Progress("shapes of the ansatz", 0.0, {}, {}))
            shapes = fit_shapes(rod, motions, coordinates, settings.period, settings.seed)
            network.shapes.copy_(torch.as_tensor(shapes, dtype=torch.float32))
    else:
        network.load_state_dict(start.state_dict())
    device = torch.device(resolve_device(settings.device, "torch"))
    windows = Windows(network, motions, device)
    noisy = points = None
    if data.noisy is not None:
        points, answers = data.noisy
        noisy = encoded_steps(network, points, answers).on(device)
    if settings.box_samples:
        points = box_points(rod, motions, settings)
    physics = None
    if settings.physics and points is not None:
        residual = RodResidual(rod, device=device)
        physics = PhysicsLoss(residual, ends_of_steps(motions, every=50)), points.on(device)
    network.on(device)
    if start is None and network.architecture.shapes == "shared":
        _fit_linear_part(network, windows, noisy, settings)
    return network, _Data(windows, noisy, physics)


def _checked_start(start: Path, robot: Robot, settings: TrainingSettings) -> tuple[DDPINN, Card]:
    network, card = files.load(start)
    for name, ours, theirs in (
        ("architecture", settings.architecture, card.architecture),
        ("intervals", settings.intervals, card.intervals),
        ("chambers", len(robot.chambers), len(card.inputs.actuation[0])),
    ):
        if ours != theirs:
            raise UserError(f"start {start}: has other {name} than the training asks for: {theirs}")
    return network, card


def _new_network(rod: CosseratRod, settings: TrainingSettings) -> DDPINN:
    nominal = rod.nominal_parameters
    low, high = nominal.copy(), nominal.copy()
    for column, name in enumerate(PARAMETERS):
        if name in settings.ranges:
            low[column] *= settings.ranges[name].low
            high[column] *= settings.ranges[name].high
    inputs = inputs_of(
        rod.robot.actuation_matrix,
        rod.robot.pressure_limits.maximum,
        PARAMETERS,
        nominal,
        low,
        high,
        settings.period,
    )
    torch.manual_seed(settings.seed)
    network = DDPINN(settings.architecture, inputs, rod.state_size)
    with torch.no_grad():
        network.last.weight.mul_(0.1)
        network.last.bias.zero_()
    return network


@torch.no_grad()
def _fit_linear_part(
    network: DDPINN, windows: Windows, noisy: Samples | None, settings: TrainingSettings
) -> None:
    """Least squares over motions and noisy steps: what the hidden layers need not learn.

    The ridge pulls the next state to zero, not the increment: a direction that the data do not
    excite decays. Outputs of the network are measured in what the linear part leaves over.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    states, told, inner = windows.draw(200_000, 1, generator)
    before = [states[:, 0]]
    after = [torch.cat((inner, states[:, 1:]), dim=1)]
    tolds, weights = [told[:, 0]], [states.new_ones(len(states))]
    if noisy is not None:
        some = chosen_samples(noisy, 100_000, generator)
        before.append(some.before)
        after.append(some.marks)
        tolds.append(some.told)
        weights.append(states.new_full((100_000,), settings.noisy))
    seen = torch.cat((torch.cat(before), torch.cat(tolds)), dim=-1)
    seen = torch.cat((seen, seen.new_ones(len(seen), 1)), dim=-1).double()
    terms = network.architecture.terms
    wanted = torch.cat(after)[:, -terms:].flatten(1).double()
    weighted = seen * torch.cat(weights).double()[:, None]
    normal = weighted.T @ seen + _RIDGE * len(seen) * torch.eye(seen.shape[1], device=seen.device)
    solution = torch.linalg.solve(normal, weighted.T @ wanted).T
    left_over = wanted - seen @ solution.T
    network.output_scale.copy_(left_over[: len(states)].std(dim=0).clamp_min(1e-6))
    solution[:, : network.state_size] -= torch.eye(network.state_size, device=seen.device).repeat(
        terms, 1
    )
    network.linear.copy_(solution)


class _Trainer:
    """Optimisation of one network: what changes while it is trained."""

    def __init__(
        self, network: DDPINN, data: _Data, settings: TrainingSettings, path: Path
    ) -> None:
        self.network, self.data, self.settings = network, data, settings
        self.checkpoint_path = path.with_name(path.name + ".checkpoint")
        self.log_path = path.with_name(path.name + ".csv")
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.iteration, self.seconds, self.skipped = 0, 0.0, 0
        trained = [*network.hidden, network.last]
        matrices = [layer.weight for layer in trained]
        others = [layer.bias for layer in trained]
        rate = settings.learning_rate
        if settings.optimiser == "muon":
            # after equal time (120 s, one pair of runs) 1.2 mm of free running, Adam 1.6 mm
            self.optimisers: list[torch.optim.Optimizer] = [
                torch.optim.Muon(matrices, lr=5 * rate, weight_decay=0.0),
                torch.optim.Adam(others, lr=rate, betas=(0.9, 0.99)),
            ]
        else:
            self.optimisers = [torch.optim.Adam([*matrices, *others], lr=rate)]
        self._rates = [optimiser.param_groups[0]["lr"] for optimiser in self.optimisers]
        self._plateau = _Plateau()
        self._loop_error = _compiled_loop() if _compiling_pays(settings) else loop_error
        on_gpu = network.mean.device.type == "cuda"
        self._mixed = settings.precision == "mixed" and (on_gpu or _bfloat16_pays())

    def run(self, validation: Validation, report: Report) -> None:
        """All iterations that are left."""
        settings = self.settings
        sums: dict[str, float] = {}
        figures: dict[str, float] = {}
        summed = 0
        saved = told = time.monotonic()
        next_validation = self.iteration / settings.iterations + settings.validate_every
        begun = time.monotonic() - self.seconds
        while self.iteration < settings.iterations:
            losses = self._iterate()
            for name, value in losses.items():
                sums[name] = sums.get(name, 0.0) + value
            summed += 1
            done = self.iteration / settings.iterations
            now = time.monotonic()
            if done >= next_validation or now - told > 1.0:
                means = {name: value / summed for name, value in sums.items()}
                told = now
                if done >= next_validation:
                    next_validation += settings.validate_every
                    figures = validation(self.network)
                    self._log(means, figures, now - begun)
                    sums, summed = {}, 0
                report(Progress("training", done, means, figures))
            if now - saved > CHECKPOINT_EVERY:
                self.seconds = now - begun
                self.save()
                saved = now
        self.seconds = time.monotonic() - begun
        self.network.compute_type = torch.float32

    def _iterate(self) -> dict[str, float]:
        settings, network = self.settings, self.network
        done = self.iteration / settings.iterations
        tail = done >= 1.0 - FLOAT32_TAIL
        network.compute_type = torch.bfloat16 if self._mixed and not tail else torch.float32
        factor = self._rate_factor(done)
        for optimiser, rate in zip(self.optimisers, self._rates, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = factor * rate
        losses = self._losses(stage_at(settings.stages, done))
        total = torch.stack(list(losses.values())).sum()
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        total.backward()
        norm = torch.nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
        if torch.isfinite(norm):
            for optimiser in self.optimisers:
                optimiser.step()
        else:
            self._skip()
        self.iteration += 1
        values = {name: value.item() / _UNIT for name, value in losses.items()}
        if settings.schedule == "plateau":
            self._plateau.add(sum(values.values()))
        return values

    def _losses(self, stage: Stage) -> dict[str, torch.Tensor]:
        settings, data, network = self.settings, self.data, self.network
        losses: dict[str, torch.Tensor] = {}
        if settings.supervised:
            count = settings.batch if stage.steps == 1 else settings.loop_batch
            states, told, inner = data.windows.draw(count, stage.steps, self.generator)
            marks = torch.cat((inner, states[:, 1:2]), dim=1)
            before, first_told = states[:, 0], told[:, 0]
            if data.noisy is not None:
                extra = max(1, round(settings.noisy_share * count))
                noisy = chosen_samples(data.noisy, extra, self.generator)
                before = torch.cat((before, noisy.before))
                first_told = torch.cat((first_told, noisy.told))
                marks = torch.cat((marks, noisy.marks))
            errors, end = marks_error(network, before, first_told, marks, settings.distance)
            inside = errors.new_full((errors.shape[1],), settings.inner)
            inside[-1] = 1.0
            errors = (errors * inside).sum(dim=-1) * _UNIT * settings.supervised
            losses["one step"] = errors[:count].mean()
            if data.noisy is not None:
                losses["noisy"] = settings.noisy * errors[count:].sum() / len(errors)
            if stage.steps > 1:
                # the sum over the loop grows with its length: so does its weight, but slower
                weight = _UNIT * settings.loop / math.sqrt(stage.steps)
                losses["loop"] = weight * self._loop_error(
                    network, end[:count], states, told, settings.distance
                )
        if data.physics is not None and self.iteration % settings.physics_every == 0:
            physics, points = data.physics
            some = chosen(points, settings.physics_points, self.generator)
            residual = physics(network, some, self.generator)
            losses["physics"] = _UNIT * settings.physics * residual
        return losses

    def _rate_factor(self, done: float) -> float:
        if self.settings.schedule == "plateau":
            return self._plateau.factor
        warm = min(1.0, (self.iteration + 1) / WARM_UP)
        return warm * max(_LEAST_RATE, (1.0 - done) ** 2)

    def _skip(self) -> None:
        """An iteration without finite gradients changes nothing; many of them end the training."""
        self.skipped += 1
        if self.skipped > 100:
            raise UserError(
                f"training: losses not finite in {self.skipped} iterations up to {self.iteration}; "
                "lower learning_rate, or the steps of the stages"
            )

    def save(self) -> None:
        """Everything needed to go on later."""
        self.checkpoint_path.parent.mkdir(parents=True, exist_ok=True)
        part = self.checkpoint_path.with_name(self.checkpoint_path.name + ".part")
        torch.save(
            {
                "settings": self.settings.model_dump_json(),
                "network": self.network.state_dict(),
                "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
                "generator": self.generator.get_state(),
                "numbers": [self.iteration, self.seconds, self.skipped, *self._plateau.numbers()],
            },
            part,
        )
        part.replace(self.checkpoint_path)

    def resume(self) -> None:
        """Goes on from a checkpoint of the same settings, if there is one."""
        if not self.checkpoint_path.is_file():
            return
        kept: dict[str, Any] = torch.load(self.checkpoint_path, weights_only=True)
        if kept["settings"] != self.settings.model_dump_json():
            raise UserError(
                f"{self.checkpoint_path}: is of a training with other settings; remove it, "
                "or train with --fresh"
            )
        self.network.load_state_dict(kept["network"])
        for optimiser, state in zip(self.optimisers, kept["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        self.generator.set_state(kept["generator"])
        self.iteration, self.seconds, self.skipped, *plateau = kept["numbers"]
        self._plateau.restore(plateau)

    def _log(self, losses: dict[str, float], figures: dict[str, float], seconds: float) -> None:
        row = {
            "iteration": self.iteration,
            "seconds": round(seconds, 1),
            "learning_rate": self.optimisers[-1].param_groups[0]["lr"],
            **{f"loss {name}": f"{losses.get(name, math.nan):.4g}" for name in _LOSSES},
            **{name: f"{value:.4g}" for name, value in figures.items()},
        }
        new = not self.log_path.is_file() or self.iteration == 0
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("a", newline="") as file:
            writer = csv.DictWriter(file, row)
            if new:
                writer.writeheader()
            writer.writerow(row)


_LOSSES = ("one step", "noisy", "loop", "physics")


class _Plateau:
    """Halves the learning rate when the mean loss of an epoch has not fallen for 75 (Sec. IV-B)."""

    epoch, patience, reduction = 1000, 75, 0.5

    def __init__(self) -> None:
        self.factor, self._best, self._bad = 1.0, math.inf, 0.0
        self._sum, self._count = 0.0, 0.0

    def add(self, loss: float) -> None:
        self._sum, self._count = self._sum + loss, self._count + 1
        if self._count < self.epoch:
            return
        mean = self._sum / self._count
        self._sum, self._count = 0.0, 0.0
        self._bad = 0.0 if mean < self._best else self._bad + 1
        self._best = min(mean, self._best)
        if self._bad > self.patience:
            self.factor, self._bad = self.factor * self.reduction, 0.0

    def numbers(self) -> list[float]:
        return [self.factor, self._best, self._bad, self._sum, self._count]

    def restore(self, numbers: list[float]) -> None:
        self.factor, self._best, self._bad, self._sum, self._count = numbers


def stage_at(stages: tuple[Stage, ...], done: float) -> Stage:
    """The stage of a training of which a part is done."""
    ends = np.cumsum([stage.share for stage in stages])
    return stages[min(int(np.searchsorted(ends / ends[-1], done, side="right")), len(stages) - 1)]


def _bfloat16_pays() -> bool:
    """Whether this processor multiplies bfloat16 in hardware; otherwise float32 is faster."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def _compiling_pays(settings: TrainingSettings) -> bool:
    """In long trainings, where a compiler is.

    An iteration with 24 steps of 320 plain neurons took 62 ms compiled, 92 ms not, and compiling
    two minutes.
    """
    return settings.iterations >= 10_000 and shutil.which("g++") is not None


def _compiled_loop() -> Callable[..., torch.Tensor]:
    """The self-loop unrolled and fused; once for every stage and precision."""
    torch._dynamo.config.recompile_limit = 64
    return torch.compile(loop_error, dynamic=False)
