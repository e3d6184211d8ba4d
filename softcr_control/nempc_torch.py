"""The NEMPC with its population on a device: one small copy there per tick, one back.

Between the copies nothing is decided by Python: shapes are fixed, chance comes from the device, and
what depends on values is a choice between tensors. On a GPU a tick is therefore one CUDA graph; on
the processor the same operations run one by one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from softcr_control.command import Command
from softcr_control.costs.keep_away import KeepAway
from softcr_control.costs.output_error import OutputError
from softcr_control.costs.rollout import known_rows, known_states, tip_directions, tip_rotations
from softcr_control.costs.tensor_rollout import TensorRollout, check_output, with_tensors
from softcr_control.horizon import MAXIMUM_DELAY, Problem
from softcr_control.knots import mapped
from softcr_control.limits import limit_knots
from softcr_control.nempc import Nempc, NempcSettings
from softcr_control.observation import ControlContext
from softcr_control.tensor_search import TensorEvolution, TensorPolish
from softcr_models.errors import UserError
from softcr_models.model import Model
from softcr_models.surrogate.prediction import SurrogatePrediction
from softcr_models.surrogate.tip_poses import TipPoses

_REHEARSALS = 3  # ticks one by one before they are recorded: libraries set themselves up first
_PERIOD_TOLERANCE = 1e-7  # [s]: 0.1 us moves nothing by a micrometre


def what_is_missing(model: Model, period: float) -> str:
    """Why a model cannot carry a population of tensors at a period [s]; empty if it can."""
    if not isinstance(model, SurrogatePrediction):
        return "only the network ('ddpinn') computes with tensors"
    if model.folded is None:
        return "the network says the shapes of its ansatz itself: train one with shared shapes"
    if abs(model.network.period - period) > _PERIOD_TOLERANCE:
        return f"period {period:.6g} s: the network was trained for {model.network.period:.6g} s"
    return ""


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """Candidates, the cheapest first."""

    knots: torch.Tensor  # (B, K, m)
    terms: torch.Tensor  # (B, terms)
    costs: torch.Tensor  # (B,) inf where not finite
    residuals: torch.Tensor  # (B, R) whose squares add up to the costs
    tips: torch.Tensor  # (N, 3) [m] of the first


class NempcTorch(Nempc):
    """`Nempc` on a trained network, its population on the network's device.

    Same settings, cost terms, memory and answers; other random numbers, and the minimum inside the
    box is found by other means.

    Args:
        context: its model is a trained network with shared shapes and the context's period.
        settings: as of `Nempc`.
        record: whether a tick is recorded once and replayed, which only a GPU can.

    Raises:
        UserError: as of `Nempc`, or a model that cannot do this.
    """

    def __init__(
        self, context: ControlContext, settings: NempcSettings, record: bool = True
    ) -> None:
        missing = what_is_missing(context.model, context.period)
        if missing:
            raise UserError(f"controller: no population of tensors: {missing}")
        model = context.model
        assert isinstance(model, SurrogatePrediction) and model.folded is not None  # noqa: PT018
        self._network, self._folded = model, model.folded
        self._device = device = model.device
        network = model.network
        self._poses = TipPoses(model.rod, network.mean, network.decoder)
        names = [parameter.name for parameter in model.parameters]
        self._compliance = names.index(TipPoses.parameter)
        self._generator = torch.Generator(device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._records = record and device.type == "cuda"
        super().__init__(context, settings)

        inputs, horizon = self._inputs, settings.horizon
        channels, states, count = inputs.size, model.state.size, self._knots.count
        self._low, self._high = self._tensor(inputs.low), self._tensor(inputs.high)
        self._steps = [None if step is None else self._tensor(step) for step in self._max_steps]
        self._to_commands = self._tensor(self._knots.to_commands)
        self._to_next_tick = self._tensor(self._knots.to_next_tick)
        for term in self._terms:
            if isinstance(term, OutputError):
                check_output(term.output)
            if isinstance(term, KeepAway):
                raise UserError("costs.obstacles: backend 'torch' knows none, 'numpy' does")
        self._residuals = [with_tensors(term, device).residuals for term in self._terms]
        self._polish = TensorPolish(settings.population, count, inputs.low, inputs.high, device)
        self._population = torch.zeros((settings.population, count, channels), device=device)
        self._told = _Exchange(
            {
                "state": (states,),
                "approach": (MAXIMUM_DELAY + 1, channels),
                "delay": (1,),
                "free_inputs": ((horizon + 1) * channels,),
                "input_response": (horizon * channels, (horizon + 1) * channels),
                "previous_command": (channels,),
                "wanted_states": (horizon, states),
                "reference_known": (horizon,),
                "reference_tip_positions": (horizon, 3),
                "wanted_tip_rotations": (horizon, 3, 3),
                "orientation_known": (horizon,),
                "wanted_tip_directions": (horizon, 3),
                "direction_asked": (horizon,),
                "parameters": (1, len(names)),
                "compliance": (),
                "mutation": (channels,),
                "begins": (),
            },
            device,
        )
        self._outputs = _Exchange(
            {
                "cost": (),
                "terms": (len(self._terms),),
                "knots": (count, channels),
                "tips": (horizon, 3),
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
        self._evolution_on_device = TensorEvolution(
            *self.settings.shares,
            self._tensor(self.settings.stranger_spread * self._inputs.range),
            self.settings.mutation_probability,
            self._generator,
        )
        self._begins = True

    def _plan(self, problem: Problem) -> Command | None:
        self._write(problem)
        self._search()
        found = self._outputs.from_device()
        cost = float(found["cost"])
        self._begins = not math.isfinite(cost)
        if self._begins:
            return None
        # in double precision the limits are kept to the bit
        knots = self._feasible(found["knots"][None].astype(float), problem)
        pairs = zip(self._terms, found["terms"].tolist(), strict=True)
        told = {term.name: cost for term, cost in pairs if term.applies(problem.reference)}
        return Command(
            pressures=self._knots.commands(knots)[0, 0],
            cost=cost,
            cost_terms=told,
            best_knots=knots[0],
            predicted_tips=found["tips"].astype(float),
        )

    def _write(self, problem: Problem) -> None:
        """What the tick is about, to the device."""
        delay = len(problem.approach) - 1
        pad = ((0, MAXIMUM_DELAY - delay), (0, 0))
        reference, model = problem.reference, self._network
        rotations = tip_rotations(reference, model)
        directions = tip_directions(reference)
        self._told.to_device(
            state=problem.present_state,
            approach=np.pad(problem.approach, pad, mode="edge"),
            delay=delay,
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
            parameters=problem.parameters * model.factors,
            compliance=problem.parameters[self._compliance],
            mutation=self._mutation(problem.control_error),
            begins=self._begins,
        )

    @torch.inference_mode()
    def _search(self) -> None:
        """A tick on the device, from inputs to outputs."""
        if not self._records:
            # numba's parallel loops change the number of threads of the pool they share with torch
            torch.set_num_threads(self._network.threads)
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
        told = self._told.on_device
        start = self._after_delay(told)
        evaluated = self._evaluated_on_device(self._first_candidates(told), start, told)
        for _ in range(self.settings.generations - 1):
            bred = self._evolution_on_device.next_generation(
                evaluated.knots, told["previous_command"], told["mutation"]
            )
            evaluated = self._evaluated_on_device(bred, start, told)
        if self.settings.polish and self._polish.possible:
            evaluated = self._polished_on_device(evaluated, start, told)
        self._population.copy_(evaluated.knots)
        self._outputs.on_device["cost"].copy_(evaluated.costs[0])
        self._outputs.on_device["terms"].copy_(evaluated.terms[0])
        self._outputs.on_device["knots"].copy_(evaluated.knots[0])
        self._outputs.on_device["tips"].copy_(evaluated.tips)

    def _first_candidates(self, told: dict[str, torch.Tensor]) -> torch.Tensor:
        """(B, K, m) from the last generation, one tick later, or a first generation."""
        evolution, previous = self._evolution_on_device, told["previous_command"]
        first = evolution.first_generation(previous, self._knots.count)
        shifted = mapped(self._population, self._to_next_tick)
        bred = evolution.next_generation(shifted, previous, told["mutation"])
        return torch.where(told["begins"] > 0.5, first, bred)

    def _after_delay(self, told: dict[str, torch.Tensor]) -> torch.Tensor:
        """(1, nx) coordinates when the optimised commands begin."""
        now = self._network.network.encode(told["state"][None])
        levels = told["approach"][:, None]
        later = self._folded.rollout(now, levels[:-1], levels[1:], told["parameters"])
        return later[:, 0].index_select(0, told["delay"].long() - 1)

    def _evaluated_on_device(
        self, knots: torch.Tensor, start: torch.Tensor, told: dict[str, torch.Tensor]
    ) -> _Evaluation:
        """Candidates made feasible, rolled out, judged and sorted."""
        previous = told["previous_command"]
        if self.settings.first_knot_fixed:
            knots[:, 0] = previous
        limit_knots(knots, previous, self._low, self._high, self._steps)
        rollout = self._rollout(mapped(knots, self._to_commands), start, told)
        parts = [residuals(rollout) for residuals in self._residuals]
        terms = torch.stack([part.square().sum(dim=1) for part in parts], dim=1)
        costs = terms.sum(dim=1)
        costs = torch.where(torch.isfinite(costs), costs, torch.inf)
        costs, order = torch.sort(costs)
        best = order[:1]
        return _Evaluation(
            knots.index_select(0, order),
            terms.index_select(0, order),
            costs,
            torch.cat(parts, dim=1).index_select(0, order),
            rollout.tip_poses.index_select(0, best)[0, :, :, 3],
        )

    def _rollout(
        self, commands: torch.Tensor, start: torch.Tensor, told: dict[str, torch.Tensor]
    ) -> TensorRollout:
        """The futures of candidates with commands (B, N, m)."""
        inputs = torch.addmm(told["free_inputs"], commands.flatten(1), told["input_response"])
        levels = inputs.view(len(commands), -1, commands.shape[2]).transpose(0, 1)
        steps = self._folded.rollout(start, levels[:-1], levels[1:], told["parameters"])
        shared = {field.name for field in fields(TensorRollout)} & set(told)
        return TensorRollout(
            coordinates=steps.transpose(0, 1),
            commands=commands,
            network=self._network.network,
            poses=lambda coordinates: self._poses(coordinates, told["compliance"]),
            **{name: told[name] for name in shared},
        )

    def _polished_on_device(
        self, evaluated: _Evaluation, start: torch.Tensor, told: dict[str, torch.Tensor]
    ) -> _Evaluation:
        """A better proposal of the Gauss-Newton step becomes the first, the last one leaves."""
        proposals = self._polish.proposals(evaluated.knots, evaluated.residuals, evaluated.costs)
        polished = self._evaluated_on_device(proposals, start, told)
        better = polished.costs[0] < evaluated.costs[0]

        def chosen(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
            return torch.where(better, torch.cat((ours[:1], theirs[:-1])), theirs)

        return _Evaluation(
            chosen(polished.knots, evaluated.knots),
            chosen(polished.terms, evaluated.terms),
            chosen(polished.costs, evaluated.costs),
            chosen(polished.residuals, evaluated.residuals),
            torch.where(better, polished.tips, evaluated.tips),
        )

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=self._device)


class _Exchange:
    """Named float32 numbers that go between host and device in one copy.

    Attributes:
        on_device: views by name.
    """

    def __init__(self, shapes: dict[str, tuple[int, ...]], device: torch.device) -> None:
        self._shapes = shapes
        size = sum(math.prod(shape) for shape in shapes.values())
        self._device = torch.zeros(size, device=device)
        # what is not pageable is copied without a detour
        self._host = torch.zeros(size, pin_memory=device.type == "cuda")
        self.on_device = self._views(self._device)
        self._on_host = {name: view.numpy() for name, view in self._views(self._host).items()}

    def to_device(self, **values: Any) -> None:
        """Copies numbers there; all names must be given."""
        assert values.keys() == self._shapes.keys()
        for name, value in values.items():
            self._on_host[name][...] = value
        self._device.copy_(self._host, non_blocking=True)

    def from_device(self) -> dict[str, np.ndarray]:
        """Numbers from there, once the device has them; valid until the next call."""
        self._host.copy_(self._device)
        return self._on_host

    def _views(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        parts = flat.split([math.prod(shape) for shape in self._shapes.values()])
        return {
            name: part.view(shape)
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }
