"""Small models the estimation tests share: linear systems and a chain of three coupled pendula."""

from types import MappingProxyType

import numpy as np
from scipy.optimize import fsolve

from softcr_models.model import TIP, Group, Inputs, Layout, OutputInfo, Parameter

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
