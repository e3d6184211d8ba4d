"""The rods that policies are trained on: many at a time, a period of control per call."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import Robot
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.state import RodState
from softcr_papers.pawlowski2019.learning.plant_settings import PlantSettings
from softcr_papers.pawlowski2019.policy.observation import inputs_lag

LONGEST_LINEARISATION = 0.025
"""Longer ones let a rod that is thrown about leave what a rod can do [s]."""

LARGEST_TURN = 1.5
"""Of an interval [rad]: a state that is bent more, or not finite, is not a rod's any more."""


@dataclass(eq=False)
class Lanes:
    """Rods in motion; arrays of one row for each.

    Attributes:
        states: (B, nx) float32, as the rods are computed.
        acting: (B, m) inputs that act.
        sent: (B, m) inputs that were commanded last.
        parameters: (B, P) of the model.
    """

    states: np.ndarray
    acting: np.ndarray
    sent: np.ndarray
    parameters: np.ndarray

    def put(self, rows: np.ndarray, others: "Lanes") -> None:
        """Replaces some rows by all of the others'."""
        self.states[rows], self.acting[rows] = others.states, others.acting
        self.sent[rows], self.parameters[rows] = others.sent, others.parameters


class Plant:
    """The rod of a robot for training.

    Attributes:
        robot, settings: as given.
        model: the rod as a model, on the settings' grid.
        lags: whether inputs follow commands late, so that a policy has to be told them.
    """

    def __init__(self, robot: Robot, settings: PlantSettings | None = None) -> None:
        """See the class.

        Raises:
            UserError: steps that are too long for the rod.
        """
        self.robot, self.settings = robot, settings or PlantSettings()
        own = self.settings
        self._dt = own.period / own.linearisations
        if self._dt > 1.001 * LONGEST_LINEARISATION:
            raise UserError(
                f"linearisations: {own.linearisations} in {own.period} s is not allowed: one may "
                f"serve {LONGEST_LINEARISATION} s at most"
            )
        rod = CosseratRod(robot, own.intervals)
        self.model = RodPrediction(rod, own.substeps)
        self.lags = inputs_lag(self.model, own.period)
        # without weight nothing is turned from node to node: a sixth of a step's time
        weightless = not robot.gravity and rod.fittings is None
        grid = rod.grid._replace(gravity_subintervals=1) if weightless else rod.grid
        self._run = stepper.Run(
            rod.body, grid, self._dt, own.substeps, held=int(self.model.inputs.lag is None),
            fittings=rod.fittings, loads=rod.loads,
            largest_error=own.largest_error or stepper.ERROR,
        )  # fmt: skip

    def at_rest(self, inputs: np.ndarray, random: np.random.Generator | None = None) -> Lanes:
        """Rods that stand still, each with parameters of its own if the settings ask for them.

        A rod whose parameters differ from the nominal ones begins where the nominal one stands.

        Args:
            inputs: (B, m) that act.
            random: of the parameters; None: nominal ones.
        """
        nominal = self.model.nominal_parameters
        unique, rows = np.unique(inputs, axis=0, return_inverse=True)
        states = np.stack([self._still(tuple(row)) for row in unique.tolist()])[rows.ravel()]
        parameters = np.tile(nominal, (len(inputs), 1))
        if random is not None and self.settings.spread:
            parameters *= 1.0 + random.uniform(-1.0, 1.0, parameters.shape) * self.settings.spread
        given = inputs.astype(float)
        return Lanes(states.astype(np.float32), given, given.copy(), parameters)

    def advance(self, lanes: Lanes, commands: np.ndarray) -> np.ndarray:
        """Carries rods over a period under commands (B, m), and tells which of them are still rods.

        Returns:
            (B,) whether a state is plausible; one that is not stays where it was.
        """
        inputs, lag = self.model.inputs, self.model.inputs.lag
        reach = inputs.rate * self.settings.period
        lanes.sent = np.clip(commands, lanes.sent - reach, lanes.sent + reach)
        count = self.settings.linearisations
        if lag is None:
            levels = np.repeat(lanes.sent[:, None], count + 1, axis=1)
        else:
            levels = np.empty((len(commands), count + 1, inputs.size))
            levels[:, 0] = lanes.acting
            for k in range(count):
                levels[:, k + 1] = lag.step(levels[:, k], lanes.sent, self._dt)
        states = lanes.states.astype(float)
        rolled = stepper.advance(states, levels, lanes.parameters, self._run, single=True)
        after = rolled[:, -1]
        turns = after[:, self._moments[0]] * self._moments[1]
        plausible = np.abs(turns).max(axis=1) < LARGEST_TURN  # NaN is not
        if plausible.all():
            lanes.states = np.ascontiguousarray(after)
        else:
            lanes.states[plausible] = after[plausible]
        lanes.acting = levels[:, -1]
        return plausible

    def tips(self, lanes: Lanes) -> np.ndarray:
        """(B, 3, 4) poses of the tips, base frame [m], float32."""
        rod = self.model.rod
        return stepper.poses(lanes.states, lanes.parameters, rod.body, rod.grid, rod.fittings)

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of the elastic moments in a state, and by how much an interval turns of each."""
        rod = self.model.rod
        places = RodState(np.arange(rod.state_size), rod.segments).wrenches[:, 3:]
        of = np.repeat(np.arange(rod.segments), np.diff(rod.grid.first_row))
        turns = rod.robot.segment_compliances[of, 3:] * rod.grid.interval_length[of, None]
        return places.ravel(), turns.ravel().astype(np.float32)

    def _still(self, inputs: tuple[float, ...]) -> np.ndarray:
        """(nx,) equilibrium at inputs, found once."""
        if inputs not in self._known:
            self._known[inputs] = self.model.equilibrium(
                np.array(inputs), self.model.nominal_parameters
            )
        return self._known[inputs]

    @cached_property
    def _known(self) -> dict[tuple[float, ...], np.ndarray]:
        return {}
