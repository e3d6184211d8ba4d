"""Small models of the protocol whose optimum is known otherwise, and how controllers are asked."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from softcr_control.observation import ControlContext, Observation
from softcr_control.reference.references import Reference
from softcr_models.chain.pressure import PressureLag
from softcr_models.model import TIP, Group, Inputs, Layout, OutputInfo, Parameter

PERIOD = 1 / 70
LAG = PressureLag(gain=11.0, pole=10.94)


class TestedModel:
    """What every model here does alike; a subclass has `_a`, `_b`, `_c` and says what they mean."""

    __test__ = False
    outputs: ClassVar = {
        TIP: OutputInfo((3, 4), "m", "pose"),
        "tip_speed": OutputInfo((1,), "m/s", "vector"),
    }

    def __init__(self) -> None:
        self.seen_parameters: list[np.ndarray] = []

    def step(self, states, begin, end, parameters, dt):
        return states @ self._a.T + 0.5 * (begin + end) @ self._b.T

    def rollout(self, state, inputs, parameters, dt):
        self.seen_parameters.append(np.array(parameters))
        states = np.broadcast_to(state, (len(inputs), self.state.size))
        rows = []
        for k in range(inputs.shape[1] - 1):
            states = self.step(states, inputs[:, k], inputs[:, k + 1], parameters, dt)
            rows.append(states)
        return np.stack(rows, axis=1)

    def tip_positions(self, states, parameters):
        return states @ self._c.T

    def observe(self, names, states, inputs, parameters):
        return {name: self._observed(name, states, parameters) for name in names}

    def _observed(self, name, states, parameters):
        if name == "tip_speed":
            return np.linalg.norm(states[:, 1:2], axis=1, keepdims=True)
        poses = np.tile(np.eye(3, 4), (len(states), 1, 1))
        poses[:, :, 3] = self.tip_positions(states, parameters)
        return poses

    def rollout_tips(self, state, inputs, parameters, dt):
        states = self.rollout(state, inputs, parameters, dt)
        rows = states.reshape(-1, states.shape[2])
        poses = self.observe((TIP,), rows, None, np.atleast_2d(parameters))[TIP]
        return poses.reshape(*states.shape[:2], 3, 4)

    def equilibrium(self, inputs, parameters):
        return np.linalg.solve(np.eye(len(self._a)) - self._a, self._b @ inputs)

    def warm_up(self) -> None:
        pass


class LinearModel(TestedModel):
    """x' = A x + B p, tip = C x [m]; two oscillators and a first-order state, three pressures."""

    state = Layout(
        (
            Group("position", np.array([0, 2, 4]), "m"),
            Group("rate", np.array([1, 3]), "m/s"),
        ),
        np.array([0.05, 0.5, 0.05, 0.5, 0.05]),
    )
    inputs = Inputs(
        "pressure", ("a", "b", "c"), "Pa",
        np.zeros(3), np.full(3, 1e5), np.full(3, 2e6), LAG,
    )  # fmt: skip
    parameters = (
        Parameter("bending_compliance", "rad/(N m m)", 49.9, 20.0, 100.0),
        Parameter("tip_mass", "kg", 0.0668, 0.03, 0.12),
    )

    def __init__(self) -> None:
        super().__init__()
        self._a = np.eye(5)
        for i in (0, 2):
            self._a[i : i + 2, i : i + 2] += PERIOD * np.array([[-2.0, 1.0], [-100.0, -4.0]])
        self._a[4, 4] -= PERIOD * 8.0
        self._b = (
            PERIOD
            * 1e-6
            * np.array([[0, 0, 0], [100, -50, -50], [0, 0, 0], [0, 87, -87], [5, 5, 5.0]])
        )
        self._c = np.zeros((3, 5))
        self._c[[0, 1, 2], [0, 2, 4]] = 1.0


class CurvedModel(LinearModel):
    """The same with a tip that depends on the state in a curved way."""

    def tip_positions(self, states, parameters):
        x, y, z = (states @ self._c.T).T
        return np.stack([np.sin(8 * x) / 8, np.sin(8 * y) / 8, z - 4 * (x**2 + y**2)], axis=1)


class TendonModel(TestedModel):
    """Two states that follow two tendons, of other lengths and rates each, without any lag."""

    state = Layout((Group("bend", np.array([0, 1]), "m"),), np.array([0.02, 0.05]))
    inputs = Inputs(
        "tendon_length", ("left", "right"), "m",
        np.array([-0.01, 0.02]), np.array([0.03, 0.12]), np.array([0.2, 1.0]), None,
    )  # fmt: skip
    parameters = (Parameter("stiffness", "N/m", 100.0, 50.0, 200.0),)

    def __init__(self) -> None:
        super().__init__()
        rates = np.array([12.0, 9.0])
        self._a = np.diag(1.0 - PERIOD * rates)
        self._b = np.diag(PERIOD * rates)
        self._c = np.array([[1.0, 0.0], [0.0, 1.0], [0.2, 0.1]])


def limited(model, **limits):
    """The model with other `low`, `high`, `rate` of all its inputs."""
    arrays = {name: np.full(model.inputs.size, float(value)) for name, value in limits.items()}
    model.inputs = replace(model.inputs, **arrays)
    return model


def context(model, seed: int = 1, ramped: bool = False) -> ControlContext:
    """Of a controller at the period of these models."""
    return ControlContext(None, model, PERIOD, seed, ramped)


def ask(controller, state, reference, inputs, parameters=None, delay: int = 1):
    """A controller's answer at the reference's stamp."""
    return controller.command(
        Observation(
            reference.stamp, state, parameters or {}, reference, inputs, LinearModel(), delay
        )
    )


def circle(time: float, rows: int, radius: float = 0.03) -> Reference:
    """A tip circle at 1.5 Hz that the models can follow."""
    phase = 2 * np.pi * 1.5 * (time + PERIOD * np.arange(rows))
    tips = np.stack([radius * np.cos(phase), radius * np.sin(phase), np.full(rows, 0.06)], axis=1)
    return Reference(time, PERIOD, None, tips)
