"""The NEMPC with its population on a GPU: one small copy there per tick, one back.

Between the copies nothing is decided by Python: shapes are fixed, chance comes from the device, and
what depends on values is a choice between tensors. So a tick is one CUDA graph. In a graph an
operation costs microseconds however little it does: what is ours is done by few kernels, and cost
terms, which may be anybody's, by operations of torch.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from softcr_control.command import Command
from softcr_control.costs.rollout import known_rows, known_states, tip_directions, tip_rotations
from softcr_control.costs.tensor_rollout import TensorRollout, with_tensors
from softcr_control.costs.tip_orientation import TipOrientation
from softcr_control.observation import ControlContext
from softcr_control.predictive.device_search import DeviceSearch
from softcr_control.predictive.horizon import MAXIMUM_DELAY, Problem
from softcr_control.predictive.knots import mapped
from softcr_control.predictive.nempc import Nempc, NempcSettings
from softcr_models.cuda.device_model import DeviceModel, Moment, inner
from softcr_models.errors import UserError
from softcr_models.plugins import in_a_line
from softcr_runtime.blocks.budget import Budget

_REHEARSALS = 3  # ticks one by one before they are recorded: libraries set themselves up first
_OF_MODEL = "model."  # begins the names of what the model is told


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """The cheapest candidates, in ascending order of their costs."""

    knots: torch.Tensor  # (S, K, m) parents of the next generation, and what the polish looks at
    costs: torch.Tensor  # (B,) inf where not finite
    residuals: torch.Tensor  # (S', R) whose squares add up to the costs, of the first ones
    best: torch.Tensor  # (F,) of the first: costs of its terms, knots, tips; all that is told

    @property
    def found(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What `DeviceSearch.keep` compares."""
        return self.knots, self.costs, self.best


class NempcTorch(Nempc):
    """`Nempc` on a model that computes with tensors, its population on the model's device.

    Same settings, cost terms, memory and answers; other random numbers. A tick is one piece of
    work, whatever its budget.

    Args:
        context: its model has a method `on_device(period, step) -> DeviceModel`.
        settings: as of `Nempc`.
        record: whether a tick is recorded once and replayed, which only a GPU can.

    Raises:
        UserError: as of `Nempc`, or a model or cost term that cannot do this.
    """

    def __init__(
        self, context: ControlContext, settings: NempcSettings, record: bool = True
    ) -> None:
        step = settings.prediction_step * context.period
        self._futures_of = futures_of = _device_model(context, step)
        self._device = device = futures_of.device
        self._generator = torch.Generator(device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._records = record and device.type == "cuda"
        super().__init__(context, settings)

        inputs, horizon = self._inputs, settings.horizon
        steps = horizon // settings.prediction_step
        channels, states, count = inputs.size, self._model.state.size, self._knots.count
        self._to_commands = self._tensor(self._knots.to_commands)
        self._residuals = [with_tensors(term, device).residuals for term in self._terms]
        self._search = DeviceSearch(
            settings.shares,
            settings.stranger_spread * inputs.range,
            settings.mutation_probability,
            inputs.low,
            inputs.high,
            self._max_steps,
            settings.first_knot_fixed,
            self._generator,
            device,
        )
        self._turns = any(isinstance(term, TipOrientation) for term in self._terms)
        self._polishes = settings.polish and self._search.polishes
        parents = settings.shares[0]
        self._kept = max(parents, self._search.samples) if self._polishes else parents
        self._population = torch.zeros((parents, count, channels), device=device)
        of_model = futures_of.shapes(steps, MAXIMUM_DELAY)
        self._told = _Exchange(
            {
                "free_inputs": ((steps + 1) * channels,),
                "input_response": (horizon * channels, (steps + 1) * channels),
                "previous_command": (channels,),
                "wanted_states": (steps, states),
                "reference_known": (steps,),
                "reference_tip_positions": (steps, 3),
                "wanted_tip_rotations": (steps, 3, 3),
                "orientation_known": (steps,),
                "wanted_tip_directions": (steps, 3),
                "direction_asked": (steps,),
                "mutation": (channels,),
                "to_later": (count * channels, count * channels),
                "delay": (),
                "begins": (),
                **{_OF_MODEL + name: shape for name, shape in of_model.items()},
            },
            device,
        )
        self._outputs = _Exchange(
            {
                "terms": (len(self._terms),),
                "knots": (count, channels),
                "tips": (steps, 3),
            },
            device,
        )

    def prepared(self, settings: NempcSettings) -> Callable[[], None]:
        """Refuses: its graph of operations holds the numbers.

        Raises:
            UserError: always.
        """
        raise UserError("NempcTorch: its numbers cannot change while it works: clean up first")

    def _begin_population(self) -> None:
        self._generator.manual_seed(self._seed)
        self._begins = True

    def _plan(self, problem: Problem, budget: Budget) -> Command | None:
        self._write(problem)
        try:
            self._play()
            found = self._outputs.on_host()
        except RuntimeError as error:
            if self._device.type != "cuda":
                raise
            raise UserError(f"controller: the GPU failed: {in_a_line(error)}") from None
        cost = float(found["terms"].sum())
        self._begins = not math.isfinite(cost)
        if self._begins:
            return None
        # in double precision the limits are kept to the bit
        knots = self._feasible(found["knots"][None].astype(float), problem)
        pairs = zip(self._terms, found["terms"].tolist(), strict=True)
        told = {term.name: cost for term, cost in pairs if term.applies(problem.reference)}
        return Command(
            plan=self._knots.commands(knots)[0],
            cost=cost,
            cost_terms=told,
            best_knots=knots[0],
            predicted_tips=found["tips"].astype(float),
            candidates=self.settings.population * self.settings.generations,
        )

    def _write(self, problem: Problem) -> None:
        """What the tick is about, to the device."""
        reference, model = problem.reference, self._model
        # the kernel is asked for poses of the reference only where a term compares them
        count = len(reference.tip_positions)
        rotations = np.zeros((count, 3, 3))
        if self._turns:
            rotations = tip_rotations(reference, model)
        directions = tip_directions(reference)
        of_model = self._futures_of.told(_moment(problem))
        self._told.tell(
            free_inputs=problem.free_inputs,
            input_response=problem.input_response,
            previous_command=problem.previous_command,
            wanted_states=known_states(reference, model.state.size),
            reference_known=known_rows(reference.states, len(reference.tip_positions)),
            reference_tip_positions=reference.tip_positions,
            wanted_tip_rotations=rotations,
            orientation_known=rotations.any(axis=(1, 2)),
            wanted_tip_directions=directions,
            direction_asked=directions.any(axis=1),
            mutation=self._mutation(problem.control_error),
            to_later=self._knots.to_later(problem.shift),
            delay=problem.delay,
            begins=self._begins,
            **{_OF_MODEL + name: values for name, values in of_model.items()},
        )

    @torch.inference_mode()
    def _play(self) -> None:
        """A tick on the device, from inputs to outputs, copies included."""
        if not self._records:
            self._tick()
            return
        if self._graph is None:
            self._graph = self._recorded()
        self._graph.replay()

    def _recorded(self) -> torch.cuda.CUDAGraph:
        """The tick as a graph; the population and its chance begin anew."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(_REHEARSALS):
                self._tick()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        # other threads of a node may use the GPU while this one records
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._tick()
        self._generator.manual_seed(self._seed)
        return graph

    # -- on the device: no value is looked at, no shape depends on one ----------------------------

    def _tick(self) -> None:
        self._told.to_device()
        told, search = self._told.on_device, self._search
        begun = self._futures_of.begun(inner(_OF_MODEL, told))
        evaluated = self._evaluated_on_device(self._first_candidates(told), begun, told)
        for _ in range(self.settings.generations - 1):
            bred = search.bred(evaluated.knots, told["previous_command"], told["mutation"])
            evaluated = self._evaluated_on_device(bred, begun, told)
        polished = None
        if self._polishes:
            proposals = search.proposals(
                evaluated.knots, evaluated.residuals, evaluated.costs, told["previous_command"]
            )
            polished = self._evaluated_on_device(proposals, begun, told).found
        search.keep(evaluated.found, polished, self._population, self._outputs.flat)
        self._outputs.from_device()

    def _first_candidates(self, told: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(B, K, m) from the last generation, some ticks later, or a first generation."""
        return self._search.bred(
            self._population, told["previous_command"], told["mutation"], told["to_later"],
            told["begins"],
        )  # fmt: skip

    def _evaluated_on_device(
        self,
        knots: torch.Tensor,
        begun: Mapping[str, torch.Tensor],
        told: Mapping[str, torch.Tensor],
    ) -> _Evaluation:
        """Limited candidates rolled out and judged; the cheapest of them."""
        rollout = self._rollout(mapped(knots, self._to_commands), begun, told)
        parts = [residuals(rollout) for residuals in self._residuals]
        residuals = torch.cat(parts, dim=1)
        ends = list(itertools.accumulate(part.shape[1] for part in parts))
        costs, order = torch.sort(self._search.costs(residuals))
        kept = min(self._kept, len(knots))
        cheapest, fitted, best = self._search.gathered(
            order, knots, residuals, rollout.tip_poses.contiguous(), ends, kept
        )
        return _Evaluation(cheapest, costs, fitted, best)

    def _rollout(
        self,
        commands: torch.Tensor,
        begun: Mapping[str, torch.Tensor],
        told: Mapping[str, torch.Tensor],
    ) -> TensorRollout:
        """The futures of candidates with commands (B, N, m)."""
        inputs = torch.addmm(told["free_inputs"], commands.flatten(1), told["input_response"])
        readings = inputs.view(len(commands), -1, commands.shape[2])
        shared = {field.name for field in fields(TensorRollout)} & set(told)
        return TensorRollout(
            futures=self._futures_of.futures(begun, readings),
            commands=commands,
            **{name: told[name] for name in shared},
        )

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=self._device)


def _device_model(context: ControlContext, step: float) -> DeviceModel:
    """The context's model, for steps of so long [s].

    Raises:
        UserError: it does not compute with tensors, or not such steps.
    """
    make = getattr(context.model, "on_device", None)
    try:
        if make is None:
            raise UserError(f"{type(context.model).__name__} does not compute with tensors")
        found: DeviceModel = make(context.period, step)
        return found
    except UserError as error:
        raise UserError(f"controller: on a GPU: {error}") from None


def _moment(problem: Problem) -> Moment:
    """What a model is told of a tick."""
    rows = np.minimum(np.arange(MAXIMUM_DELAY + 1), problem.delay)
    return Moment(
        present_state=problem.present_state,
        delay=problem.delay,
        approach=problem.approach[rows],
        start_state=lambda: problem.state,
        remembered=problem.remembered,
        gain=problem.estimated.gain,
        offset=problem.estimated.offset,
        parameters=problem.parameters,
    )


class _Exchange:
    """Named float32 numbers that go between host and device in one copy, which is part of a tick.

    Attributes:
        flat: all of them on the device, in the order of their shapes.
        on_device: views of that by name.
    """

    def __init__(self, shapes: dict[str, tuple[int, ...]], device: torch.device) -> None:
        self._shapes, self._device = shapes, device
        size = sum(math.prod(shape) for shape in shapes.values())
        self.flat = torch.zeros(size, device=device)
        # what is not pageable is copied without a detour, and while the host goes on
        self._host = torch.zeros(size, pin_memory=device.type == "cuda")
        self.on_device = self._views(self.flat)
        self._on_host = {name: view.numpy() for name, view in self._views(self._host).items()}

    def tell(self, **values: Any) -> None:
        """Numbers that the next `to_device` copies; all names must be given."""
        assert values.keys() == self._shapes.keys()
        for name, value in values.items():
            self._on_host[name][...] = value

    def to_device(self) -> None:
        """Copies all numbers there."""
        self.flat.copy_(self._host, non_blocking=True)

    def from_device(self) -> None:
        """Copies all numbers from there."""
        self._host.copy_(self.flat, non_blocking=True)

    def on_host(self) -> dict[str, np.ndarray]:
        """What `from_device` has copied, once that is done; valid until the next copy."""
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()
        return self._on_host

    def _views(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        parts = flat.split([math.prod(shape) for shape in self._shapes.values()])
        return {
            name: part.view(shape)
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }
