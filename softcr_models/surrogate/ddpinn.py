"""The domain-decoupled physics-informed network, Licher et al. 2025, Sec. IV, (33)-(36)."""

from itertools import pairwise

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch.nn import functional

from softcr_models.errors import UserError
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.description import rod_inputs
from softcr_models.rod.state import RodState, intervals_of
from softcr_models.surrogate.ansatz import (
    PIECES,
    SHARED_SHAPES,
    amplitudes_per_mark,
    basis,
    basis_rate,
    bounded_shapes,
)
from softcr_models.surrogate.architecture import Architecture
from softcr_models.surrogate.coordinates import Coordinates


class Inputs(BaseModel):
    """What a network is told beside the state, and in which units.

    Attributes:
        actuation: (q, m) wrench components per input in each segment [N/Pa, N m/Pa; -, m], (7),
            rows of zeros and repeated ones left out; of helical and tapered tendons, whose wrench
            changes along the rod, the inputs themselves.
        actuation_scale: (q,) half of the largest wrench [N; N m], or input.
        parameter_names: columns of `parameters`.
        nominal: (P,) parameters in the middle.
        low, high: (P,) range of the parameters; beyond it they are clipped, and who asks for
            them is told (ParameterRange).
        period: of a step [s].
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    actuation: list[list[float]]
    actuation_scale: list[float]
    parameter_names: list[str]
    nominal: list[float]
    low: list[float]
    high: list[float]
    period: float = Field(gt=0.0)


class DDPINN(torch.nn.Module):
    """x_hat(t) = x_0 + a(alpha(x_0, u, xi), t), (33)-(36), in coordinates of motion.

    The amplitudes are the sum of a linear part, fitted by least squares, and of a network whose
    inputs saturate. What the network adds is therefore bounded, and as the linear part's spectral
    radius is below one, so is every motion of any length (`spectral_radius`).

    Two things in it are the rod's own. Its equations are products of states (curvature times
    wrench, velocity times momentum), and so are gated neurons. Gravity acts along the rod's own
    axes, whose directions are sines of strains added up: `directions` says them, so that no neuron
    need learn them. At equal cost both together leave 0.6 of the error of free running.

    In the paper pressures are constant over a step. Ours go linearly from `begin` to `end`, because
    behind the pressure lag a chamber changes by up to 14 % of its range within one.
    """

    mean: torch.Tensor
    encoder: torch.Tensor
    decoder: torch.Tensor
    weight: torch.Tensor
    output_scale: torch.Tensor
    linear: torch.Tensor
    shapes: torch.Tensor
    bending: torch.Tensor

    def __init__(
        self, architecture: Architecture, inputs: Inputs, state_size: int, segments: int = 1
    ) -> None:
        """A network of zeros, to be trained or loaded, for the states of a rod of segments."""
        super().__init__()
        self.architecture, self.inputs, self.state_size = architecture, inputs, state_size
        told = 2 * len(inputs.actuation_scale) + len(inputs.nominal)
        nodes = intervals_of(state_size, segments) if architecture.directions else 0
        widths = [state_size + told + 3 * nodes, *architecture.layers * (architecture.neurons,)]
        gates = 2 if architecture.activation == "gated" else 1
        self.hidden = torch.nn.ModuleList(
            torch.nn.Linear(a, gates * b) for a, b in pairwise(widths)
        )
        per_term = 1 if self._shared else 4
        outputs = per_term * architecture.terms * state_size
        self.last = torch.nn.Linear(widths[-1], outputs)
        size = (state_size, state_size)
        for name, value in {
            "mean": torch.zeros(state_size),
            "encoder": torch.zeros(size),
            "decoder": torch.zeros(size),
            "weight": torch.ones(state_size),
            "output_scale": torch.ones(outputs),
            "linear": torch.zeros(outputs, state_size + told + 1),
            "shapes": torch.tensor(SHARED_SHAPES, dtype=torch.float32),
        }.items():
            self.register_buffer(name, value)
        if architecture.directions:
            self.register_buffer("bending", torch.zeros(2 * nodes, state_size + 1))
        given = {
            name: torch.tensor(getattr(inputs, name), dtype=torch.float32)
            for name in ("actuation", "actuation_scale", "low", "high")
        }
        # a tip mass that the robot does not have is told as 0: log 1 in half ranges of infinity
        absent = given["high"] <= 0.0
        low, high = (torch.where(absent, 1.0, given[name]) for name in ("low", "high"))
        half = 0.5 * torch.log(high / low).clamp_min(1e-6)
        self._told = {
            "wrench": given["actuation"] / given["actuation_scale"][:, None],
            "low": low,
            "high": high,
            "half": torch.where(absent, torch.inf, half),
            "middle": 0.5 * torch.log(high * low),
        }

    @property
    def period(self) -> float:
        """Length of a step [s]."""
        return self.inputs.period

    @property
    def _shared(self) -> bool:
        return self.architecture.shapes == "shared"

    def set_coordinates(self, coordinates: Coordinates, rod: CosseratRod) -> None:
        """Takes the coordinates of a sample of the rod's states."""
        for buffer, values in (
            (self.mean, coordinates.mean),
            (self.encoder, coordinates.encode),
            (self.decoder, coordinates.decode),
            (self.weight, coordinates.weight),
        ):
            buffer.copy_(torch.as_tensor(values, dtype=torch.float32))
        if self.architecture.directions:
            bending = bending_per_compliance(rod)
            seen = bending @ np.column_stack((coordinates.decode, coordinates.mean))
            self.bending.copy_(torch.as_tensor(seen, dtype=torch.float32))

    def on(self, device: torch.device) -> "DDPINN":
        """This network with everything it needs on a device."""
        self._told = {name: value.to(device) for name, value in self._told.items()}
        if self.kept_amplitudes is not None:
            self.kept_amplitudes = self.kept_amplitudes.to(device)
        return self.to(device)

    def spectral_radius(self) -> float:
        """Of the linear part over one step: below one, no motion can grow for ever."""
        size = self.state_size
        step = torch.eye(size) + self.linear[-size:, :size] if self._shared else torch.eye(size)
        return float(torch.linalg.eigvals(step.double()).abs().max())

    # -- what a network works on ------------------------------------------------------------------

    def encode(self, states: torch.Tensor) -> torch.Tensor:
        """Coordinates (..., nx) of states (..., nx)."""
        return (states - self.mean) @ self.encoder.T

    def decode(self, coordinates: torch.Tensor) -> torch.Tensor:
        """States (..., nx) of coordinates (..., nx)."""
        flat = coordinates.reshape(-1, self.state_size)
        return torch.addmm(self.mean, flat, self.decoder.T).reshape(coordinates.shape)

    def tell(
        self, begin: torch.Tensor, end: torch.Tensor, parameters: torch.Tensor
    ) -> torch.Tensor:
        """What the network is told beside the state, (..., 2 q + P), of order one.

        Args:
            begin, end: (..., m) inputs [Pa, N].
            parameters: (..., P), clipped to their range.
        """
        return torch.cat((self.tell_pressures(begin, end), self.tell_parameters(parameters)), -1)

    def tell_pressures(self, begin: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        """What `tell` says of inputs (..., m), (..., 2 q): at the start, and how they change."""
        wrench = self._told["wrench"]
        # through the lag a pressure changes by a tenth of its range in a step
        change = functional.linear(end - begin, 5.0 * wrench)
        return torch.cat((functional.linear(begin, wrench) - 1.0, change), dim=-1)

    def tell_parameters(self, parameters: torch.Tensor) -> torch.Tensor:
        """What `tell` says of parameters (..., P), which stay over a rollout."""
        inside = torch.minimum(torch.maximum(parameters, self._told["low"]), self._told["high"])
        return (torch.log(inside) - self._told["middle"]) / self._told["half"]

    def compliance_of(self, known: torch.Tensor) -> torch.Tensor:
        """(..., 1) bending compliance [rad/(N m m)] in what `tell_parameters` said."""
        number = self.inputs.parameter_names.index("bending_compliance")
        half, middle = self._told["half"][number], self._told["middle"][number]
        return torch.exp(known[..., number : number + 1] * half + middle)

    def directions(self, coordinates: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        """(..., 3 n) axis of the cross-section at each node past the base; see `directions_of`."""
        angles = functional.linear(coordinates, self.bending[:, :-1], self.bending[:, -1])
        known = told[..., 2 * len(self.inputs.actuation_scale) :]
        return directions_of(self.compliance_of(known) * angles)

    def outputs(
        self, coordinates: torch.Tensor, told: torch.Tensor, rows: slice = slice(None)
    ) -> torch.Tensor:
        """Linear part plus network, (..., outputs), or only some rows of it."""
        limit = self.architecture.saturation
        entered = limit * torch.tanh(coordinates / limit)
        hidden = torch.cat((entered, told), dim=-1)
        if self.architecture.directions:
            hidden = torch.cat((hidden, self.directions(coordinates, told)), dim=-1)
        linear = functional.linear(
            torch.cat((coordinates, told), dim=-1),
            self.linear[rows, :-1],
            self.linear[rows, -1],
        )
        compute = self.compute_type
        hidden = hidden.to(compute)
        for layer in self.hidden:
            weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
            hidden = self.activated(functional.linear(hidden, weight.to(compute), bias.to(compute)))
        last = functional.linear(
            hidden, self.last.weight[rows].to(compute), self.last.bias[rows].to(compute)
        )
        return linear + self.output_scale[rows] * last.to(linear.dtype)

    def activated(self, values: torch.Tensor) -> torch.Tensor:
        """What a hidden layer's neurons answer to its sums."""
        if self.architecture.activation == "silu":
            return functional.silu(values)
        return functional.glu(values)

    compute_type: torch.dtype = torch.float32  # of the hidden layers
    # `amplitudes`, where the shapes do not change any more: a CUDA graph cannot invert a matrix
    kept_amplitudes: torch.Tensor | None = None

    def amplitudes(self) -> torch.Tensor:
        """(I, I) `amplitudes_per_mark` of the shared shapes, in double precision: they are
        thousands, and their sines nearly cancel."""
        return amplitudes_per_mark(self.shapes.double(), self.period)

    def at_marks(self, coordinates: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        """(..., PIECES, nx) coordinates at the ends of the equal parts of a step."""
        out = self.outputs(coordinates, told)
        if self._shared:
            changes = out.reshape(*out.shape[:-1], self.architecture.terms, self.state_size)
            return coordinates[..., None, :] + changes
        marks = self.period * torch.arange(1, PIECES + 1, device=out.device) / PIECES
        return torch.stack([self._moved(coordinates, out, time)[0] for time in marks], dim=-2)

    def advance(self, coordinates: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        """Coordinates (..., nx) one period later: what control and filters need, and no more.

        With shared shapes the ansatz at the end of a step is one row per coordinate of the last
        layer: as cheap as a network without an ansatz.
        """
        if self._shared:
            return coordinates + self.outputs(coordinates, told, slice(-self.state_size, None))
        return self.at(coordinates, told, coordinates.new_full((), self.period))[0]

    def at(
        self, coordinates: torch.Tensor, told: torch.Tensor, time: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Coordinates and their rates (..., nx) at times (...) [s] inside the step, (33)-(34).

        The rate is the ansatz's analytic derivative.
        """
        return self._moved(coordinates, self.outputs(coordinates, told), time)

    def _moved(
        self, coordinates: torch.Tensor, out: torch.Tensor, time: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Coordinates and rates at times of the step, from what the last layer says."""
        time = time[..., None] if time.ndim else time
        terms, size = self.architecture.terms, self.state_size
        if self._shared:
            changes = out.reshape(*out.shape[:-1], terms, size)
            shapes, kept = self.shapes.double(), self.kept_amplitudes
            per_mark = self.amplitudes() if kept is None else kept
            shape = shapes[:, 0], shapes[:, 1], shapes[:, 2]
            values = (basis(*shape, time.double()) @ per_mark.T).to(out.dtype)
            rates = (basis_rate(*shape, time.double()) @ per_mark.T).to(out.dtype)
            moved = (values[..., None] * changes).sum(dim=-2)
            rate = (rates[..., None] * changes).sum(dim=-2)
        else:
            out = out.reshape(*out.shape[:-1], terms, 4, size)
            shape = bounded_shapes(out[..., 1:, :])
            time = time[..., None] if time.ndim else time
            amplitude = out[..., 0, :]
            moved = (amplitude * basis(*shape, time)).sum(dim=-2)
            rate = (amplitude * basis_rate(*shape, time)).sum(dim=-2)
        return coordinates + moved, rate

    # -- what people call -------------------------------------------------------------------------

    @torch.no_grad()
    def predict(
        self,
        states: torch.Tensor,
        pressures: torch.Tensor,
        bending_compliance: torch.Tensor | float,
        time: torch.Tensor | float | None = None,
        pressures_end: torch.Tensor | None = None,
        **parameters: float,
    ) -> torch.Tensor:
        """States after `time`, (33) and (36).

        Args:
            states: (B, nx) now.
            pressures: (B, m) [Pa], constant, or at the start of the period.
            bending_compliance: (B,) or one number [rad/(N m m)].
            time: (B,) or one number, at most the period [s]; the period if not given.
            pressures_end: (B, m) at the end of the period [Pa], linear in between.
            parameters: others by name; nominal if not given.

        Returns:
            (B, nx).

        Raises:
            UserError: a parameter that the network was not trained for.
        """
        names = self.inputs.parameter_names
        given = {"bending_compliance": bending_compliance, **parameters}
        for name in given:
            if name not in names:
                raise UserError(f"parameter {name!r}: the network knows {', '.join(names)}")
        columns = [
            torch.as_tensor(given.get(name, nominal), dtype=states.dtype).expand(len(states))
            for name, nominal in zip(names, self.inputs.nominal, strict=True)
        ]
        end = pressures if pressures_end is None else pressures_end
        told = self.tell(pressures, end, torch.stack(columns, dim=-1))
        coordinates = self.encode(states)
        if time is None:
            return self.decode(self.advance(coordinates, told))
        return self.decode(self.at(coordinates, told, torch.as_tensor(time, dtype=states.dtype))[0])


def bending_per_compliance(rod: CosseratRod) -> np.ndarray:
    """(2 n, nx) angles about x and y, between the base and each node, per bending compliance.

    The sum of bending strains up to there: (4) with moments linear between nodes, connectors taken
    for straight.
    """
    moments = RodState(np.eye(rod.state_size), rod.segments).wrenches[:, :, 3:5]
    lower, of = rod_intervals(rod)  # moments: state, row, x and y
    between = 0.5 * (moments[:, lower + 1] + moments[:, lower])
    between *= rod.grid.interval_length[of, None] * rod.body.bending_share[of, 3:5]
    angles = np.cumsum(between, axis=1)
    return angles.transpose(2, 1, 0).reshape(-1, rod.state_size)


def rod_intervals(rod: CosseratRod) -> tuple[np.ndarray, np.ndarray]:
    """(N,) lower row of each interval, and (N,) the segment it belongs to."""
    of = np.repeat(np.arange(rod.segments), np.diff(rod.grid.first_row) - 1)
    return np.arange(len(of)) + of, of


def directions_of(angles: torch.Tensor) -> torch.Tensor:
    """(..., 3 n): the base's axis seen from cross-sections bent by angles (..., 2 n) about x, y.

    Exact in plane bending, of which what a rod does is not far; a sine for the two components
    across and a cosine along, so that they stay bounded.
    """
    about_x, about_y = angles.chunk(2, dim=-1)
    # the tiny number keeps the derivative finite where nothing is bent
    bent = (about_x.square() + about_y.square() + 1e-12).sqrt()
    part = torch.sin(bent) / bent
    return torch.cat((about_x * part, about_y * part, torch.cos(bent)), dim=-1)


def inputs_of(rod: CosseratRod, low: np.ndarray, high: np.ndarray, period: float) -> Inputs:
    """The `Inputs` of a rod: wrenches that its actuators can make, parameters and their range.

    Args:
        rod: whose robot names the actuators, and their highest inputs.
        low, high: (P,) of the rod's parameters.
        period: of a step [s].
    """
    robot = rod.robot
    matrix = robot.segment_actuation.reshape(-1, rod.input_size)
    if robot.has_varying_actuation:
        matrix = np.eye(rod.input_size)
    matrix = matrix[np.sort(np.unique(matrix, axis=0, return_index=True)[1])]
    largest = (np.abs(matrix) * rod_inputs(robot).high).max(axis=1)
    acting = largest > 1e-9 * largest.max()
    return Inputs(
        actuation=matrix[acting].tolist(),
        actuation_scale=(0.5 * largest[acting]).tolist(),
        parameter_names=list(rod.parameter_names),
        nominal=rod.nominal_parameters.tolist(),
        low=low.tolist(),
        high=high.tolist(),
        period=period,
    )
