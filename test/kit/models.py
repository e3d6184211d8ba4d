"""Small models whose optimum or estimate is known otherwise, and how controllers are asked."""

from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from scipy.optimize import fsolve

from softcr_control.observation import ControlContext, Observation
from softcr_control.reference.references import Reference
from softcr_models.chain.pressure import PressureLag
from softcr_models.model import TIP, Group, Inputs, Layout, OutputInfo, Parameter

# --- models that controllers steer --------------------------------------------------------------

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


# --- models that filters estimate: linear systems and a chain of three coupled pendula ----------

LENGTH, GRAVITY, DAMPING = 0.05, 9.81, 1.5
INPUT_GAIN = 0.005


def pendulum_derivative(states, inputs, compliance):
    """Rates (B, 6) of the states (B, 6) of three pendula coupled by springs 1 / compliance."""
    angles, rates = states[:, :3], states[:, 3:]
    padded = np.pad(angles, ((0, 0), (1, 1)))
    padded[:, -1] = padded[:, -2]
    coupling = (padded[:, 2:] - 2 * angles + padded[:, :-2]) / compliance[:, None]
    acceleration = -GRAVITY * np.sin(angles) + coupling - DAMPING * rates + INPUT_GAIN * inputs
    return np.hstack([rates, acceleration])


def pendulum_step(states, inputs, compliance, dt):
    """Chain of three pendula coupled by springs of stiffness 1 / compliance, one RK4 step.

    states (B, 6) angles and rates [rad, rad/s]; inputs (B, 3); compliance (B,).
    """

    def derivative(x):
        return pendulum_derivative(x, inputs, compliance)

    k1 = derivative(states)
    k2 = derivative(states + 0.5 * dt * k1)
    k3 = derivative(states + 0.5 * dt * k2)
    k4 = derivative(states + dt * k3)
    return states + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def pendulum_tip(states):
    """(B, 3) tip of the chain [m]: x sideways, z along the straight chain."""
    x = LENGTH * np.sin(states[:, :3]).sum(axis=1)
    z = LENGTH * np.cos(states[:, :3]).sum(axis=1)
    return np.stack([x, np.zeros_like(x), z], axis=1)


def seven_state_predict(points, inputs, dt):
    """The pendula with log(compliance / 0.05) as seventh state."""
    states = pendulum_step(
        points[:, :6], np.broadcast_to(inputs, (len(points), 3)), 0.05 * np.exp(points[:, 6]), dt
    )
    return np.column_stack([states, points[:, 6]])


def seven_state_measure(points):
    """(B, 3): tip's x and z [m], first angle [rad]."""
    return np.column_stack([pendulum_tip(points)[:, ::2], points[:, 0]])


class PendulumPrediction:
    """The pendula as a model: state (6,), pressures (3,), one parameter."""

    state_scale = np.array([0.5, 0.5, 0.5, 5.0, 5.0, 5.0])
    state = Layout(
        (Group("angle", np.arange(3), "rad"), Group("rate", np.arange(3, 6), "rad/s")), state_scale
    )
    inputs = Inputs(
        "pressure", ("one", "two", "three"), "Pa",
        np.full(3, -1e4), np.full(3, 1e4), np.full(3, 1e6),
    )  # fmt: skip
    parameters = (
        Parameter("bending_compliance", "rad/(N m)", 0.05, 0.025, 0.1, deviation=0.08),
    )  # fmt: skip
    outputs = MappingProxyType({TIP: OutputInfo((3, 4), "m", "pose")})

    def step(self, states, pressures_begin, pressures_end, parameters, dt):
        mean = np.broadcast_to(0.5 * (pressures_begin + pressures_end), (len(states), 3))
        return pendulum_step(states, mean, parameters[:, 0], dt)

    def tip_poses(self, states, parameters):
        poses = np.tile(np.eye(3, 4), (len(states), 1, 1))
        sine, cosine = np.sin(states[:, 2]), np.cos(states[:, 2])
        poses[:, 0, 0], poses[:, 0, 2], poses[:, 2, 0], poses[:, 2, 2] = cosine, sine, -sine, cosine
        poses[:, :, 3] = pendulum_tip(states)
        return poses

    def observe(self, names, states, inputs, parameters):
        return {TIP: self.tip_poses(states, parameters)}

    def equilibrium(self, pressures, parameters):
        inputs, compliance = np.asarray(pressures)[None], np.atleast_1d(parameters)[:1]
        return fsolve(
            lambda x: pendulum_derivative(x[None], inputs, compliance)[0], np.zeros(6), xtol=1e-13
        )


def random_linear_system(rng, states=4, measurements=2):
    """A stable (n, n) transition, an (nz, n) measurement, noises (n,) per sqrt(s) and (nz,)."""
    transition = rng.standard_normal((states, states))
    transition *= 0.95 / np.abs(np.linalg.eigvals(transition)).max()
    measurement = rng.standard_normal((measurements, states))
    return (
        transition,
        measurement,
        rng.uniform(0.1, 1.0, states),
        rng.uniform(0.05, 0.2, measurements),
    )


class KalmanFilter:
    """The linear filter of the textbooks, Joseph form, as an oracle."""

    def __init__(self, transition, measurement, process_noise, noise, mean, covariance):
        self.transition, self.measurement = transition, measurement
        self.process, self.noise = process_noise, np.diag(noise**2)
        self.mean, self.covariance = mean, covariance

    def predict(self, inputs, dt):
        self.mean = self.transition @ self.mean + inputs
        self.covariance = self.transition @ self.covariance @ self.transition.T
        self.covariance += np.diag(self.process**2 * dt)

    def update(self, z):
        H = self.measurement
        innovation_covariance = H @ self.covariance @ H.T + self.noise
        gain = self.covariance @ H.T @ np.linalg.inv(innovation_covariance)
        innovation = z - H @ self.mean
        self.mean = self.mean + gain @ innovation
        rest = np.eye(self.mean.size) - gain @ H
        self.covariance = rest @ self.covariance @ rest.T + gain @ self.noise @ gain.T
        return innovation @ np.linalg.solve(innovation_covariance, innovation)
