"""Training of a network: data from the rod, losses, stages, checkpoints."""

import csv
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from softcr_models.devices import gpu_name, processor_name, resolve_device
from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.surrogate import files
from softcr_models.surrogate.card import Card, relaxation_times_of, rod_fields
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_models.surrogate.freed_memory import keep_freed_memory
from softcr_papers.licher2025.training import initial_network, training_data
from softcr_papers.licher2025.training.device_optimisers import (
    DeviceAdam,
    DeviceMuon,
    DeviceOptimiser,
)
from softcr_papers.licher2025.training.gathered_loop import gathered_loop_error
from softcr_papers.licher2025.training.losses import PhysicsLoss, error_size, loop_error
from softcr_papers.licher2025.training.rod_residual import RodResidual
from softcr_papers.licher2025.training.training_data import (
    Physics,
    RodData,
    Samples,
    Windows,
    chosen,
)
from softcr_papers.licher2025.training.training_settings import Stage, TrainingSettings
from softcr_papers.licher2025.training.validation import Validation
from softcr_studies.frame import checkpoints

_REHEARSALS = 2  # runs of a kind one by one before it is recorded: libraries set themselves up
_AHEAD = 64  # runs that the host may be ahead of the device


class Recorder:
    """Runs work of several kinds again and again, every kind from its own recording.

    The first runs of a kind are done kernel by kernel; they count as any other run.
    """

    def __init__(self, generator: torch.Generator) -> None:
        """For work on the current device that draws from a generator of that device."""
        self._generator = generator
        self._rehearsed: Counter[Hashable] = Counter()
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._aside, self._mark = torch.cuda.Stream(), torch.cuda.Event()
        self._runs = 0

    def __call__(self, kind: Hashable, work: Callable[[], None]) -> None:
        """One run, which may not be over yet when this returns.

        Args:
            kind: of the work; whatever the host decides in it depends on the kind alone.
            work: looks at no value and changes tensors in place. Where there is a recording of its
                kind it is not called: the recording reads and changes the same tensors.
        """
        graph = self._graphs.get(kind)
        if graph is None and self._rehearsed[kind] < _REHEARSALS:
            self._rehearsed[kind] += 1
            self._rehearse(work)
        else:
            if graph is None:
                graph = self._graphs[kind] = self._recorded(work)
            graph.replay()
        self._runs += 1
        if self._runs % _AHEAD == 0:
            self._mark.synchronize()
            self._mark.record()

    def _rehearse(self, work: Callable[[], None]) -> None:
        self._aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._aside):
            work()
        torch.cuda.current_stream().wait_stream(self._aside)

    def _recorded(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        # recordings may share memory: they run one after the other, and what they keep is not in it
        with torch.cuda.graph(graph, pool=self._pool):
            work()
        return graph


WARM_UP = 300  # iterations until the learning rate is reached
FLOAT32_TAIL = 0.04  # part of the training at its end that is never in bfloat16
CHECKPOINT_EVERY = 60.0  # [s]
# Licher et al. 2025, Sec. IV-B: the rate is halved when the mean loss of an epoch of so many
# iterations has not fallen for so many epochs
EPOCH, PATIENCE = 1000, 75
_LEAST_RATE = 1e-3  # of the learning rate
_UNIT = 100.0  # losses are squares of a few hundredths
_LOSSES = ("one step", "noisy", "loop", "physics")
_MOST_SKIPPED = 100  # iterations without finite losses


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
    losses: dict[str, float] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)


Report = Callable[[Progress], None]
Judge = Callable[[DDPINN], dict[str, float]]


class _Data(NamedTuple):
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
    validation: Judge | None = None,
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
        validation: figures of the network by name, while it is trained; `Validation`, if not given.

    Raises:
        UserError: a start that does not fit, settings that do not fit the robot, or losses that
            became NaN or infinite.
    """
    keep_freed_memory()
    begun = time.monotonic()
    # numba's threads and torch's are one pool: whichever loop ran last has set its size
    numba.set_num_threads(min(settings.threads, numba.config.NUMBA_NUM_THREADS))
    torch.set_num_threads(settings.threads)
    rod = CosseratRod(robot, settings.intervals)
    settings = fitting(settings, rod)
    begin, begin_card = _checked_start(start, robot, settings) if start else (None, None)
    if data is None:
        data = training_data.rod_data(
            rod, settings, lambda phase, done: report(Progress(phase, done))
        )
    network, tensors = _prepared(rod, data, settings, begin, report)
    validation = validation or Validation(rod, settings)
    prepared = time.monotonic() - begun
    trainer = _Trainer(network, tensors, settings, path)
    if resume:
        trainer.resume()
    trainer.run(validation, report)
    figures = validation(network)
    report(Progress("done", 1.0, validation=figures))
    hardware = {
        "processor": processor_name(),
        "threads": str(settings.threads),
        "torch": torch.__version__,
        "gpu": gpu_name() if resolve_device(settings.device, "torch") == "cuda" else "",
        "bfloat16 units": str(_bfloat16_pays()),
    }
    card = Card(
        robot=robot.name, rod=rod_fields(robot), relaxation_times=relaxation_times_of(robot),
        intervals=settings.intervals, segments=rod.segments, architecture=network.architecture,
        inputs=network.inputs,
        training=settings.model_dump(mode="json"), hardware=hardware,
        seconds={"data": round(prepared, 1), "training": round(trainer.seconds, 1)},
        iterations=trainer.iteration, validation=figures, start=begin_card,
    )  # fmt: skip
    network.on(torch.device("cpu"))
    files.save(network, card, path)
    trainer.checkpoint_path.unlink(missing_ok=True)
    return network.eval().requires_grad_(False), card


def fitting(settings: TrainingSettings, rod: CosseratRod) -> TrainingSettings:
    """The settings that a rod can be trained with: without the physics loss (37), where the rod has
    several segments, or more fitted to it than chambers and straight tendons.

    Raises:
        UserError: nothing would be left to learn from.
    """
    if not settings.physics or (rod.segments == 1 and rod.fittings is None):
        return settings
    if not settings.supervised:
        raise UserError(
            f"robot {rod.robot.name}: the physics loss is for one segment without connector and "
            "payload, and supervised 0 leaves nothing else to learn from"
        )
    return settings.model_copy(update={"physics": 0.0})


def _checked_start(start: Path, robot: Robot, settings: TrainingSettings) -> tuple[DDPINN, Card]:
    network, card = files.load(start)
    for name, ours, theirs in (
        ("architecture", settings.architecture, card.architecture),
        ("intervals", settings.intervals, card.intervals),
        ("segments", len(robot.segments), card.segments),
        ("inputs", len(robot.actuators), len(card.inputs.actuation[0])),
    ):
        if ours != theirs:
            raise UserError(f"start {start}: has other {name} than the training asks for: {theirs}")
    return network, card


def _prepared(
    rod: CosseratRod,
    data: RodData,
    settings: TrainingSettings,
    start: DDPINN | None,
    report: Report,
) -> tuple[DDPINN, _Data]:
    motions = data.motions
    network = initial_network.blank_network(rod, settings)
    shared = network.architecture.shapes == "shared"
    if start is None:
        if shared:
            report(Progress("shapes of the ansatz", 0.0))
        initial_network.fit_coordinates(network, rod, motions, settings)
    else:
        network.load_state_dict(start.state_dict())
    device = torch.device(resolve_device(settings.device, "torch"))
    network.on(device)
    windows = Windows(network, motions, device)
    noisy = points = physics = None
    if data.noisy is not None:
        points, answers = data.noisy
        noisy = training_data.encoded_steps(network, points, answers)
    if settings.box_samples:
        points = training_data.box_points(rod, motions, settings)
    if settings.physics and points is not None:
        loss = PhysicsLoss(
            RodResidual(rod, device=device), training_data.ends_of_steps(motions, every=50)
        )
        physics = loss, training_data.on_device(points, device)
    if start is None and shared:
        initial_network.fit_linear_part(network, windows, noisy, settings)
    return network, _Data(windows, noisy, physics)


class _Kind(NamedTuple):
    """What iterations may differ in beside their numbers.

    Attributes:
        steps: of the self-loop.
        physics: whether the physics loss is in it.
        compute: type of the hidden layers.
    """

    steps: int
    physics: bool
    compute: torch.dtype


class _Trainer:
    """Optimisation of one network: what changes while it is trained.

    On a GPU an iteration is recorded, one recording for every kind, and the host looks at no value
    but where it reports. Random numbers are drawn on the device of the network.
    """

    def __init__(
        self, network: DDPINN, data: _Data, settings: TrainingSettings, path: Path
    ) -> None:
        self.network, self.data, self.settings = network, data, settings
        path.parent.mkdir(parents=True, exist_ok=True)
        self.checkpoint_path = path.with_name(path.name + ".checkpoint")
        self.log_path = path.with_name(path.name + ".csv")
        device = network.mean.device
        self.generator = torch.Generator(device).manual_seed(settings.seed)
        self.iteration, self.seconds = 0, 0.0
        records = _recordable(device)
        self._recorder = Recorder(self.generator) if records else None
        self.optimisers = _optimisers(network, settings, on_device=records)
        self.plateaus = [
            ReduceLROnPlateau(each, factor=0.5, patience=PATIENCE, threshold=0.0, eps=0.0)
            for each in self.optimisers
        ]
        self._stateful: tuple[Any, ...] = (network, *self.optimisers, *self.plateaus)
        # counted on the device: sums over the iterations of the epoch and since the last figures
        number = partial(torch.zeros, (), dtype=torch.float64, device=device)
        self.skipped, self.epoch_loss = number(), number()
        self._sums = {name: number() for name in _LOSSES}
        self._summed = 0  # iterations
        self._names: dict[_Kind, frozenset[str]] = {}  # of the losses
        self._seen: frozenset[str] = frozenset()  # names since the last figures
        self._loop_error = loop_error
        if records and network.architecture.shapes == "shared":
            self._loop_error = gathered_loop_error
        elif not records and _compiling_pays(settings):
            self._loop_error = _compiled_loop()
        bfloat16 = device.type == "cuda" or _bfloat16_pays()
        self._mixed = settings.precision == "mixed" and bfloat16

    def run(self, validation: Judge, report: Report) -> None:
        """All iterations that are left."""
        settings = self.settings
        figures: dict[str, float] = {}
        saved = told = time.monotonic()
        next_validation = self.iteration / settings.iterations + settings.validate_every
        begun = time.monotonic() - self.seconds
        if self.network.architecture.shapes == "shared":
            self.network.kept_amplitudes = self.network.amplitudes()
        report(Progress("training", self.iteration / settings.iterations))
        while self.iteration < settings.iterations:
            self._iterate()
            done = self.iteration / settings.iterations
            now = time.monotonic()
            if done >= next_validation or now - told > 1.0:
                means = self._means()
                told = now
                if done >= next_validation:
                    next_validation += settings.validate_every
                    figures = validation(self.network)
                    self._log(means, figures, now - begun)
                    self._forget_sums()
                report(Progress("training", done, means, figures))
            if now - saved > CHECKPOINT_EVERY:
                self.seconds = now - begun
                self.save()
                saved = now
        self._means()
        self.seconds = time.monotonic() - begun
        self.network.compute_type, self.network.kept_amplitudes = torch.float32, None

    def _iterate(self) -> None:
        settings, network = self.settings, self.network
        done = self.iteration / settings.iterations
        tail = done >= 1.0 - FLOAT32_TAIL
        network.compute_type = torch.bfloat16 if self._mixed and not tail else torch.float32
        physics = self.data.physics is not None and self.iteration % settings.physics_every == 0
        kind = _Kind(stage_at(settings.stages, done).steps, physics, network.compute_type)
        self._set_rates(done)
        if self._recorder is None:
            self._optimise(kind)
        else:
            for optimiser in self.optimisers:
                if isinstance(optimiser, DeviceOptimiser):
                    optimiser.tell_rate()
            self._recorder(kind, partial(self._optimise, kind))
        self.iteration += 1
        self._summed += 1
        self._seen |= self._names[kind]

    def _optimise(self, kind: _Kind) -> None:
        """What an iteration computes; with optimisers on a device no value is looked at."""
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        losses = self._losses(kind)
        self._names[kind] = frozenset(losses)
        torch.stack(list(losses.values())).sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        good = torch.isfinite(norm)
        for optimiser in self.optimisers:  # where it is not, nothing is changed
            if isinstance(optimiser, DeviceOptimiser):
                optimiser.step_where(good)
            elif good:
                optimiser.step()
        self.skipped.add_(torch.logical_not(good))
        values = {name: value.detach().double() / _UNIT for name, value in losses.items()}
        for name, value in values.items():
            self._sums[name].add_(value)
        self.epoch_loss.add_(sum(values.values()))

    def _means(self) -> dict[str, float]:
        """Losses by name, over the iterations since the last figures.

        Raises:
            UserError: losses were not finite too often.
        """
        if (skipped := int(self.skipped)) > _MOST_SKIPPED:
            raise UserError(
                f"training: losses not finite in {skipped} iterations up to {self.iteration}; "
                "lower learning_rate, or the steps of the stages"
            )
        seen = [name for name in _LOSSES if name in self._seen]
        return {name: float(self._sums[name]) / self._summed for name in seen}

    def _forget_sums(self) -> None:
        for each in self._sums.values():
            each.zero_()
        self._summed, self._seen = 0, frozenset()

    def _set_rates(self, done: float) -> None:
        if self.settings.schedule == "falling":
            warm = min(1.0, (self.iteration + 1) / WARM_UP)
            factor = warm * max(_LEAST_RATE, (1.0 - done) ** 2)
            for optimiser in self.optimisers:
                optimiser.param_groups[0]["lr"] = factor * optimiser.defaults["lr"]
        elif self.iteration and self.iteration % EPOCH == 0:
            for plateau in self.plateaus:
                plateau.step(float(self.epoch_loss) / EPOCH)
            self.epoch_loss.zero_()

    def _losses(self, kind: _Kind) -> dict[str, torch.Tensor]:
        settings, data, network = self.settings, self.data, self.network
        losses: dict[str, torch.Tensor] = {}
        if settings.supervised:
            count = settings.batch if kind.steps == 1 else settings.loop_batch
            states, told, inner = data.windows.draw(count, kind.steps, self.generator)
            marks = torch.cat((inner, states[:, 1:2]), dim=1)
            before, first_told = states[:, 0], told[:, 0]
            if data.noisy is not None:
                extra = max(1, round(settings.noisy_share * count))
                noisy = chosen(data.noisy, extra, self.generator)
                before = torch.cat((before, noisy.before))
                first_told = torch.cat((first_told, noisy.told))
                marks = torch.cat((marks, noisy.marks))
            answers = network.at_marks(before, first_told)
            errors = error_size((answers - marks) * network.weight, settings.distance)
            inside = errors.new_full((errors.shape[1],), settings.inner)
            inside[-1].fill_(1.0)
            errors = (errors * inside).sum(dim=-1) * _UNIT * settings.supervised
            losses["one step"] = errors[:count].mean()
            if data.noisy is not None:
                losses["noisy"] = settings.noisy * errors[count:].sum() / len(errors)
            if kind.steps > 1:
                # the sum over the loop grows with its length: so does its weight, but slower
                weight = _UNIT * settings.loop / math.sqrt(kind.steps)
                losses["loop"] = weight * self._loop_error(
                    network, answers[:count, -1], states, told, settings.distance
                )
        if kind.physics and data.physics is not None:
            physics, points = data.physics
            some = chosen(points, settings.physics_points, self.generator)
            residual = physics(network, some, self.generator)
            losses["physics"] = _UNIT * settings.physics * residual
        return losses

    def save(self) -> None:
        """Everything needed to go on later."""
        kept = {
            "settings": self.settings.model_dump_json(),
            "states": [each.state_dict() for each in self._stateful],
            "generator": self.generator.get_state(),
            "device": self.network.mean.device.type,
            "iteration": self.iteration,
            "seconds": self.seconds,
            "skipped": float(self.skipped),
            "epoch_loss": float(self.epoch_loss),
        }
        checkpoints.save(self.checkpoint_path, kept)

    def resume(self) -> None:
        """Goes on from a checkpoint of the same settings, if there is one.

        Raises:
            UserError: it cannot be read, or is one of other settings.
        """
        checkpoints.resume(self.checkpoint_path, self._go_on)

    def _go_on(self, kept: dict[str, Any]) -> None:
        if (
            kept["settings"] != self.settings.model_dump_json()
            or kept["device"] != self.network.mean.device.type
        ):
            raise UserError(
                f"{self.checkpoint_path}: is of a training with other settings, or on another "
                "device; remove it, or train with --fresh"
            )
        for each, state in zip(self._stateful, kept["states"], strict=True):
            if isinstance(each, torch.optim.Optimizer):
                checkpoints.put_optimiser(each, state)
            elif state.keys() == each.state_dict().keys():
                each.load_state_dict(state)
            else:
                raise ValueError(f"a {type(each).__name__} has the entries {', '.join(state)}")
        self.generator.set_state(kept["generator"])
        self.iteration, self.seconds = int(kept["iteration"]), float(kept["seconds"])
        self.skipped.fill_(kept["skipped"])
        self.epoch_loss.fill_(kept["epoch_loss"])

    def _log(self, losses: dict[str, float], figures: dict[str, float], seconds: float) -> None:
        row = {
            "iteration": self.iteration,
            "seconds": round(seconds, 1),
            "learning_rate": self.optimisers[-1].param_groups[0]["lr"],
            **{f"loss {name}": f"{losses.get(name, math.nan):.4g}" for name in _LOSSES},
            **{name: f"{value:.4g}" for name, value in figures.items()},
        }
        new = not self.log_path.is_file()
        with self.log_path.open("a", newline="") as file:
            writer = csv.DictWriter(file, row)
            if new:
                writer.writeheader()
            writer.writerow(row)


def _optimisers(
    network: DDPINN, settings: TrainingSettings, on_device: bool
) -> list[torch.optim.Optimizer]:
    """Of all that is trained; `on_device`: those that look at no value."""
    trained, rate = [*network.hidden, network.last], settings.learning_rate
    matrices = [layer.weight for layer in trained]
    others = [layer.bias for layer in trained]
    if settings.optimiser == "muon":
        # after equal time (120 s, one pair of runs) 1.2 mm of free running, Adam 1.6 mm
        betas = (0.9, 0.99)
        if on_device:
            return [DeviceMuon(matrices, 5 * rate), DeviceAdam(others, rate, betas)]
        return [
            torch.optim.Muon(matrices, lr=5 * rate, weight_decay=0.0),
            torch.optim.Adam(others, lr=rate, betas=betas),
        ]
    both = [*matrices, *others]
    return [DeviceAdam(both, rate) if on_device else torch.optim.Adam(both, lr=rate)]


def stage_at(stages: tuple[Stage, ...], done: float) -> Stage:
    """The stage of a training of which a part is done."""
    ends = np.cumsum([stage.share for stage in stages])
    return stages[min(int(np.searchsorted(ends / ends[-1], done, side="right")), len(stages) - 1)]


def _recordable(device: torch.device) -> bool:
    """Whether iterations are recorded there."""
    return device.type == "cuda"


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
