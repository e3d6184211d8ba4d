"""A simulated actuator that is honestly not the model: `StructuralPlant`.

Its body is a chain of beam elements with an integrator of its own, and everything between command
and body, and between body and sensors, may differ from what filter and controller assume.
docs/explanation/idealisations.md says what it still shares with them.
"""

import math
from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.robots.robot import Robot
from softcr_models.rod.description import pose_sensors, rod_inputs
from softcr_models.rod_model.rod_model import sensor_pose
from softcr_models.rod_model.tendon_lengths import tendon_lengths
from softcr_simulation.beam.beam import Beam
from softcr_simulation.errors.different_robot import different_robot
from softcr_simulation.errors.noises import Noises
from softcr_simulation.errors.plant_errors import CURVATURE, PlantErrors, require_meaning
from softcr_simulation.plant import Measurement, Surroundings, passes
from softcr_simulation.plant_effects.acting_pressures import ActingPressures
from softcr_simulation.plant_effects.camera import Camera
from softcr_simulation.plant_effects.softening import Softening
from softcr_simulation.plant_effects.valves import Valves

_PIECE = 0.003
"""Longest step of body and pressures [s]."""


class StructuralPlant:
    """Body, valves and sensors of one robot with a plant's errors.

    It has the methods of `SimulatedPlant` and is told to the loop by the same `RodPlant`.

    Attributes:
        errors: of the plant.
        rod: of the plant's numbers, for what is asked of a state; it moves nothing.
        surroundings: none.
        time: that has passed since it was reset [s].
        pressures: (m,) true pressures at the valves [Pa], or tensions [N].
        inputs: what drives it: names, limits, lag.
        command: (m,) what valves and drives follow [Pa], [N], inside their limits.
    """

    surroundings = Surroundings()

    def __init__(
        self,
        robot: Robot,
        errors: PlantErrors,
        seed: int = 0,
        intervals: int = 20,
        mocap_latency: int = 0,
    ) -> None:
        """
        Args:
            robot: as its file has it.
            errors: of the plant.
            seed: of all its random streams.
            intervals: elements of each segment on average.
            mocap_latency: cycles by which a pose arrives late.

        Raises:
            UserError: the robot cannot have these errors.
        """
        require_meaning(errors, robot)
        self.errors, self._seed = errors, seed
        self._noises, self._latency = Noises.of(robot, errors), mocap_latency
        different = different_robot(robot, errors)
        change = errors.stiffness_curvature + robot.curvature_stiffness
        self._beam = Beam(different, intervals, change, CURVATURE)
        self.rod = self._beam.rod
        self.inputs = rod_inputs(robot)
        lag = self.inputs.lag
        self._valves: Valves | None = None
        if lag is not None:
            pole = errors.lag_pole_factor * lag.pole
            self._valves = Valves(
                lag.gain / lag.pole, pole, errors.vent_pole_factor, errors.valve_dead_band
            )
        self._acting = ActingPressures(errors, robot)
        self._softening = Softening(errors.mullins_softening, self.inputs.high - self.inputs.low)
        self._gain = errors.of_inputs("pressure_gain", robot)
        self._bias = errors.of_inputs("pressure_bias", robot)
        world = Rotation.from_euler("xyz", different.base_orientation)
        self._tip_force = world.inv().apply(errors.tip_force)
        self._beam.softness = self._softening.factor
        self._beam.settle(np.zeros(self.rod.input_size))
        self._rest = self._beam.poses.copy()
        self._beam.carry(errors.payload_mass)  # what cannot be carried is told at once
        self.reset()

    def reset(self) -> None:
        """Vented and at rest, a new body, sensors seeded again."""
        count = self.rod.input_size
        streams = [np.random.default_rng(s) for s in np.random.SeedSequence(self._seed).spawn(7)]
        self._reading_noise, self._wrench_noise, self._body_noise, self._length_noise = streams[:4]
        self._camera = Camera(self.errors, self._noises.tip, streams[4:])
        self._poses: deque[tuple[int, np.ndarray | None, tuple[np.ndarray, ...]]] = deque()
        self.time = 0.0
        self.pressures, self.command = np.zeros(count), np.zeros(count)
        self._acting.reset()
        self._acted = np.zeros(count)
        self._softening.reset()
        self._beam.place(self._rest)
        self._meet_events(0.0)

    def take_over(self, other: "StructuralPlant") -> None:
        """Go on from where another plant of the same robot is: body, memories, sensors' noise.

        Raises:
            ValueError: their hysteresis, creep or elements are of another number.
        """
        self._acting.take_over(other._acting)
        self._beam.take_over(other._beam)
        self._softening.cycles = other._softening.cycles
        self._reading_noise, self._wrench_noise = other._reading_noise, other._wrench_noise
        self._body_noise, self._length_noise = other._body_noise, other._length_noise
        self._camera, self._poses = other._camera, other._poses
        self.time, self.pressures, self.command = other.time, other.pressures, other.command
        self._acted = other._acted
        self._meet_events(self.time)

    def follow(self, command: np.ndarray) -> None:
        """From now on valves and drives follow `command` (m,), clipped to what they can."""
        self.command = np.clip(command, self.inputs.low, self.inputs.high)

    def vent(self) -> None:
        """From now on the valves let the air out, and the tendons are as slack as they may be."""
        self.follow(np.zeros(self.rod.input_size))

    def advance(self, duration: float) -> None:
        """Let `duration` [s] pass. Inputs without a lag go evenly to the command within it.

        Raises:
            ArithmeticError: the body was lost.
            ValueError: time cannot pass so.
        """
        if not passes(duration):
            return
        pieces = _pieces(duration)
        # the valves bring the reading to the command
        aim = (self.command - self._bias) / self._gain
        if self._valves is None:
            levels = np.linspace(self.pressures, aim, pieces + 1)
        else:
            levels = self._valves.levels(self.pressures, aim, duration / pieces, pieces)
        self._move(levels, duration / pieces)

    def impose(self, begin: float, end: float, times: np.ndarray, pressures: np.ndarray) -> None:
        """Live from `begin` to `end` [s] under pressures (T, m) [Pa] at the valves that somebody
        else made at times (T,) [s]: who emulates valves.

        Raises:
            ArithmeticError: the body was lost.
            ValueError: time cannot pass so.
        """
        if not passes(end - begin):
            return
        pieces = _pieces(end - begin)
        grid = np.linspace(begin, end, pieces + 1)
        levels = np.column_stack([np.interp(grid, times, chamber) for chamber in pressures.T])
        self._move(levels, (end - begin) / pieces)

    def measure(self, stamp: int) -> Measurement:
        """Read all sensors at `stamp` [ns]."""
        nodes, state = self._beam.node_poses(), self._beam.state(self._acted)
        tip = self.rod.tip_pose_from_rod_tip(nodes[-1])
        self._poses.append((stamp, self._camera.sees(tip), self._body_poses(state)))
        tip_stamp, seen = 0, None
        body_poses: tuple[np.ndarray, ...] = ()
        if len(self._poses) > self._latency:
            tip_stamp, seen, body_poses = self._poses.popleft()
        return Measurement(
            stamp=stamp,
            pressures=self._read(),
            tip_pose=seen,
            tip_stamp=tip_stamp,
            wrench=self._felt(),
            state=state,
            node_poses=nodes,
            true_tip_pose=tip,
            true_pressures=self.pressures.copy(),
            body_poses=body_poses,
            tendon_lengths=self._lengths(state),
        )

    def describe(self) -> dict[str, Any]:
        """What differs from the robot's file, for diagnostics and reports.

        `plant_model` names the equations; `plant_mismatch` has what every plant says of itself,
        `plant_errors` every field that differs from a plant without errors.
        """
        errors, robot = self.errors, self.rod.robot
        noises = {"tip_noise_mm": 1e3 * self._camera.noise}
        if robot.chambers:
            noises["pressure_noise_pa"] = self._noises.pressure
        if robot.tendons:
            noises["tension_noise_n"] = self._noises.tension
        return {
            "plant_model": "beam",
            "plant_mismatch": {
                "bending_compliance": round(errors.bending_factor - 1.0, 12),
                "tip_mass": round(errors.tip_mass_factor - 1.0, 12),
                "damping": round(errors.damping_factor - 1.0, 12),
                "intervals": self.rod.intervals,
                **noises,
                "mocap_latency_cycles": self._latency,
            },
            "plant_errors": errors.changed_in_words(),
            "true_parameters": {
                "bending_compliance": robot.bending_compliance,
                "tip_mass": robot.tip_mass,
                "damping_factor": errors.damping_factor,
            },
            "intervals": self.rod.intervals,
        }

    # -- motion -----------------------------------------------------------------------------------

    def _move(self, levels: np.ndarray, piece: float) -> None:
        """Along pressures (S + 1, m) at the valves, linear in between."""
        begin, steps = self.time, len(levels) - 1
        self.pressures = levels[-1]
        acting = self._acting.levels(levels, piece)
        acting[0] = self._acted
        self._beam.softness = self._softening.factor
        cuts = {0, steps}
        for event in self._event_times():
            step = math.ceil((event - begin) / piece - 1e-9)
            if 0 < step < steps:
                cuts.add(step)
        for first, last in pairwise(sorted(cuts)):
            self._meet_events(begin + first * piece)
            self._beam.advance(np.ascontiguousarray(acting[first : last + 1]), piece)
        self.time = begin + steps * piece
        self._acted = acting[-1]
        self._softening.travelled(acting)

    def _event_times(self) -> list[float]:
        errors = self.errors
        times = [errors.payload_picked_up, errors.tip_force_from]
        ends = (errors.payload_dropped, errors.tip_force_until)
        return times + [end for end in ends if end is not None]

    def _meet_events(self, time: float) -> None:
        errors = self.errors
        held = _lasts(time, errors.payload_picked_up, errors.payload_dropped)
        self._beam.carry(errors.payload_mass if held else 0.0)
        pulled = _lasts(time, errors.tip_force_from, errors.tip_force_until)
        self._beam.tip_force = self._tip_force if pulled else np.zeros(3)

    # -- sensors ----------------------------------------------------------------------------------

    def _read(self) -> np.ndarray:
        """(m,) readings of pressures [Pa], tensions [N]."""
        sizes = np.array([getattr(self._noises, each) for each in self.rod.robot.quantities])
        noise = sizes * self._reading_noise.standard_normal(self.rod.input_size)
        read: np.ndarray = self._gain * self.pressures + self._bias + noise
        return read

    def _felt(self) -> np.ndarray:
        sizes = np.repeat([self._noises.force, self._noises.moment], 3)
        felt: np.ndarray = self._beam.base_wrench(self._acted)
        return felt + sizes * self._wrench_noise.standard_normal(6)

    def _body_poses(self, state: np.ndarray) -> tuple[np.ndarray, ...]:
        """(3, 4) what each sensor along the body sees."""
        poses = []
        for sensor in pose_sensors(self.rod.robot).values():
            pose = self._camera.registered(sensor_pose(self.rod, sensor, state))
            pose[:, 3] += sensor.noise * self._body_noise.standard_normal(3)
            poses.append(pose)
        return tuple(poses)

    def _lengths(self, state: np.ndarray) -> np.ndarray:
        lengths = tendon_lengths(self.rod, state)
        noise = self._noises.tendon_length
        measured: np.ndarray = lengths + noise * self._length_noise.standard_normal(len(lengths))
        return measured


def _pieces(duration: float) -> int:
    return max(1, math.ceil(duration / _PIECE - 1e-9))


def _lasts(time: float, begin: float, end: float | None) -> bool:
    return time >= begin - 1e-9 and (end is None or time < end - 1e-9)
