"""Unknowns of a recorded arm in motion: their most probable values, many candidates at a time.

Windows of some seconds are simulated from steady states; at their beginning they are not judged,
until what differs there has died out. All windows of all candidates are one batch, so a derivative
by all unknowns, or a choice among damped steps or first guesses, costs one simulation of a batch.
A candidate of which the rod is lost has a large, finite error.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softcr_models.errors import UserError
from softcr_models.identification.actuation import Actuation, actuation_as
from softcr_models.identification.first_guesses import turned
from softcr_models.identification.identifiable import content_of
from softcr_models.identification.measured_groups import Group, known_mean, seen
from softcr_models.identification.rod_identification import Work
from softcr_models.identification.unknowns import FACTOR, Fit, Recorded, Unknown, recorded_as
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod, EquilibriumError
from softcr_models.rod.description import rod_inputs

INTERVALS = 8
"""Of the whole rod at most, and two of each segment at least."""
RUN_IN, JUDGED = 1.5, 4.0
"""Of a window: not judged, judged [s]."""
MOST_WINDOWS, LANES = 150, 1500
"""So many are fitted to, and fewer of many unknowns, so that a derivative has so many lanes; a
third of them while a search is far from its end."""
JUDGED_EVERY, CORRELATED = 0.05, 0.25
"""In windows that are fitted to, how far apart judged samples are, and errors that count as
independent [s]."""
STARTS = 12
"""First guesses that are tried, drawn from the priors but for one."""
_LIKELY = 0.5  # of the priors' deviations: how far they are drawn
_ROUNDS = 2  # of estimated noise
_STEPS, _USUAL = 12, 5  # of a search, at most and usually
_FIRST_STEPS = 3  # likewise, of a search among first guesses
_DAMPINGS = (0.01, 1.0, 30.0, 1e3)  # tried at once, times the one that succeeded last
_STEP = 0.02  # of a deviation, for differences
_DONE = 1e-3  # of the cost: a smaller gain ends a search
_FINEST = 1e-6  # noise that is believed [m]
_LOST = 0.5  # of the rod's length: error where the rod is lost
_CHUNK = 64  # steps between two looks at the states
_BEGIN = 0.3  # of a trial, in which it is seen what its past has left [s]
_BEGUN = 0.7  # deviation of where stops begin, as a share of their radii [-]
_SEEN_TO = 3e-3  # how well a rod agrees with what is seen there [m]
_PAST = 1.5  # measured before a start that its state is fitted to [s]
_RECENT = 0.1  # of them, e-folding time of their weights [s]
_LAST = 0.02  # likewise, of what predictions are moved by [s]
_LASTS, _DOUBT = 10.0, 2.0  # e-folding time of errors that last; of their prior, that is none [s]
_AHEAD = 2.0  # is predicted, to choose how a true start is used [s]
_OFF = 0.1  # of an input's range: how far what acts may be off at a start


@dataclass(frozen=True, eq=False)
class Motion:
    """One trial on an even grid.

    Attributes:
        name: of it.
        inputs: (T, m) readings [Pa, N].
        outputs: (T, 3) by name of group; NaN where nothing was measured.
        period: [s].
        payload: at the tip [kg].
    """

    name: str
    inputs: np.ndarray
    outputs: Mapping[str, np.ndarray]
    period: float
    payload: float = 0.0

    def __len__(self) -> int:
        return len(self.inputs)


class Window(NamedTuple):
    """Rows of a motion: its number, the first row, how many, how many are not judged at first, and
    of the others each how manieth is."""

    motion: int
    begin: int
    rows: int
    run_in: int
    every: int = 1

    def judged(self, rows: range) -> np.ndarray:
        """Those of some rows that are judged."""
        found = np.arange(max(rows.start, self.run_in), rows.stop)
        return found[(found - self.run_in) % self.every == 0]


@dataclass(frozen=True, eq=False)
class MotionFit(Fit):
    """What was found in motion.

    Attributes:
        actuation: robot, recording and actuators at these values.
        memory: over which errors are forgotten: their correlation falls to 1/e [s].
        pushed: whether predictions from true starts are nearer where inputs are off before them.
        lost: windows in which the rod is lost.
        windows: that were fitted to.
    """

    actuation: Actuation
    memory: float
    pushed: bool
    lost: int
    windows: int

    @property
    def recorded(self) -> Recorded:
        """Robot and recording."""
        return self.actuation.recorded


def motion_fit(
    robot: Robot,
    motions: Sequence[Motion],
    groups: Sequence[Group],
    unknowns: Sequence[Unknown],
    work: Work | None = None,
    seed: int = 0,
    known: Mapping[str, float] | None = None,
) -> MotionFit:
    """The most probable values of unknowns.

    Args:
        robot: the first guess.
        motions: trials of one period.
        groups: of them that are fitted to.
        unknowns: that are looked for.
        work: told what is done.
        seed: of the first guesses.
        known: values by name that an earlier fit has found; those of them that are looked for again
            have their priors about them.

    Raises:
        UserError: no trial is long enough for a window.
    """
    work = work or Work()
    most = min(MOST_WINDOWS, LANES // (len(unknowns) + 1))
    few, search = (
        _Search(robot, motions, tuple(groups), tuple(unknowns), max(1, number), work, known or {})
        for number in (most // 3, most)
    )
    begin = few.first_seconds + (2 * _FIRST_STEPS + _USUAL) * few.step_seconds
    work.expect(begin + _ROUNDS * _USUAL * search.step_seconds)
    values = few.best(few.first(np.random.default_rng(seed)), _STEPS)
    search.centre = few.centre
    for _ in range(_ROUNDS):
        search.estimate_noise(values)
        values = search.best(values, _STEPS)
    search.estimate_noise(values)
    _, jacobian = search.both(values)
    found, memory = search.by_name(values), search.memory(values)
    noise = {each.name: float(n) for each, n in zip(search.groups, search.noise, strict=True)}
    actuation, alone = actuation_as(robot, found), Simulation(robot, motions, groups)
    off = []
    for pushed in (True, False):
        near, measured = alone.from_true_starts(actuation, noise, memory, _AHEAD, _AHEAD, pushed)
        off.append(float(known_mean(distances(near - measured), (0, 1, 2))))
    return MotionFit(
        search.unknowns,
        found,
        np.linalg.inv(jacobian.T @ jacobian),
        noise,
        actuation,
        memory,
        off[0] <= off[1],
        search.lost,
        len(search.windows),
    )


def windows_of(motions: Sequence[Motion], most: int) -> list[Window]:
    """Windows of equal length, evenly chosen among all that follow each other.

    Raises:
        UserError: no motion is long enough for one.
    """
    period = motions[0].period
    every = max(1, round(JUDGED_EVERY / period))
    run_in, judged = round(RUN_IN / period), max(2, round(JUDGED / period))
    longest = max(map(len, motions))
    judged = min(judged, longest - run_in)
    if judged < max(2, round(1.0 / period)):
        raise UserError(
            f"the longest trial lasts {longest * period:.2g} s: {RUN_IN + 1.0:g} s are needed for "
            "a fit in motion"
        )
    found = [
        Window(number, begin, run_in + judged, run_in, every)
        for number, each in enumerate(motions)
        for begin in range(0, len(each) - run_in - judged + 1, judged)
    ]
    chosen = np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).astype(int))
    return [found[place] for place in chosen.tolist()]


class Simulation:
    """Rods of one first guess, of any values, along windows of motions."""

    def __init__(
        self, robot: Robot, motions: Sequence[Motion], groups: Sequence[Group],
        work: Work | None = None,
    ) -> None:  # fmt: skip
        self.robot, self.motions, self.groups = robot, motions, tuple(groups)
        self._work = work or Work()
        self._size = _rod(robot).state_size
        self._near: dict[tuple[int, int], np.ndarray] = {}  # states at rest, where windows begin
        self._begun: dict[int, np.ndarray] = {}  # of motions, see `remember`

    @property
    def whole(self) -> list[Window]:
        """A window for each motion, all of it."""
        return [Window(number, 0, len(each), 0) for number, each in enumerate(self.motions)]

    def remember(self, actuation: Actuation) -> None:
        """Finds where the stops of an actuation begin in each motion, from its first positions, and
        lets stops begin there from now on. A motion of which the rod has no steady state begins as
        it did."""
        if actuation.width:
            for number in range(len(self.motions)):
                with suppress(EquilibriumError):
                    self._begun[number] = self._past_of(actuation, number)

    def acting(self, actuation: Actuation, number: int) -> np.ndarray:
        """(T, m) what acts in a motion [Pa, N, rad], as it is remembered to have begun."""
        motion = self.motions[number]
        return actuation.acting(motion.inputs, motion.period, self._begun.get(number))

    def _past_of(self, actuation, number):
        """(m,) shares of the stops' radii, by Gauss' and Newton's method on steady states."""
        motion, begun = self.motions[number], self._begun.get(number)
        model = _model(loaded(actuation.recorded.robot, motion.payload))
        first, count = motion.inputs[:1], model.input_size
        rows = max(1, round(_BEGIN / motion.period))
        measured = self.measured([Window(number, 0, rows, 0)])[0]
        known = np.isfinite(measured).any(axis=0).ravel()
        measured = known_mean(measured, (0,)).ravel()[known]
        begun, state = np.zeros(count) if begun is None else begun, None
        for _ in range(3):
            (acts,) = actuation.acting(first, motion.period, begun)
            state = model.rod.equilibrium(acts, near=state)
            jacobian, by_inputs = model.rod.linearize(state, acts)
            # a hundredth of a share: small, and far above rounding
            moves = 0.01 * actuation.width * np.linalg.solve(jacobian, by_inputs).T
            states = np.vstack((state, state + moves))
            values = seen(model, self.groups, states, np.tile(acts, (len(states), 1)))
            found = [actuation.recorded.as_recorded(g, values[g.name]) for g in self.groups]
            places = np.stack(found, axis=1).reshape(len(states), -1)[:, known] / _SEEN_TO
            slopes = (places[1:] - places[0]) / 0.01
            off = places[0] - measured / _SEEN_TO
            square = slopes @ slopes.T + np.eye(count) / _BEGUN**2
            change = np.linalg.solve(square, slopes @ off + begun / _BEGUN**2)
            begun = np.clip(begun - change, -1.0, 1.0)
        return begun

    def measured(self, windows: Sequence[Window]) -> np.ndarray:
        """(W, L, G, 3); NaN where nothing was measured or is judged."""
        longest = max(each.rows for each in windows)
        found = np.full((len(windows), longest, len(self.groups), 3), np.nan)
        for place, window in enumerate(windows):
            motion = self.motions[window.motion]
            rows = window.judged(range(min(window.rows, len(motion) - window.begin)))
            for g, group in enumerate(self.groups):
                if group.name in motion.outputs:
                    found[place, rows, g] = motion.outputs[group.name][window.begin + rows]
        return found

    def along(
        self,
        candidates: Sequence[Actuation | None],
        windows: Sequence[Window],
        starts: np.ndarray | None = None,
        pushed: np.ndarray | None = None,
        kept: Sequence[int] = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """What is seen along windows.

        Args:
            candidates: C, None for one that cannot be.
            windows: W, judged at the same rows.
            starts: (C, W, nx) states at their begin; None: steady ones under what acts there.
            pushed: (C, W, L, m) added to what acts [Pa, N, rad].
            kept: rows of the windows of which the states are returned.

        Returns:
            (C, W, L, G, 3) positions as recorded, NaN where a rod is lost and where nothing is
            judged; (C, W, K, nx) states.
        """
        longest = max(each.rows for each in windows)
        shape = len(candidates), len(windows), longest, len(self.groups), 3
        found = np.full(shape, np.nan)
        states = np.full((len(candidates), len(windows), len(kept), self._size), np.nan)
        bodies: dict[str, list[tuple[int, int]]] = defaultdict(list)
        keys = [None if each is None else _body_of(each.recorded.robot) for each in candidates]
        for c, key in enumerate(keys):
            for w, window in enumerate(windows if key is not None else ()):
                bodies[f"{self.motions[window.motion].payload} {key}"].append((c, w))
        read: dict[tuple[int, int], np.ndarray] = {}
        for lanes in bodies.values():
            self._together(candidates, windows, lanes, starts, pushed, kept, read, found, states)
        return found, states

    def _together(
        self, candidates, windows, lanes, starts, pushed, kept, read, found, states
    ):  # fmt: skip
        """Lanes (candidate, window) of one body, into `found` and `states`."""
        longest, period = found.shape[2], self.motions[0].period
        payload = self.motions[windows[lanes[0][1]].motion].payload
        owners = list(dict.fromkeys(c for c, _ in lanes))
        models = {c: _model(loaded(candidates[c].recorded.robot, payload)) for c in owners}
        model = models[owners[0]]
        levels = np.empty((len(lanes), longest, model.input_size))
        for lane, (c, w) in enumerate(lanes):
            window = windows[w]
            if (c, window.motion) not in read:
                read[c, window.motion] = self.acting(candidates[c], window.motion)
            part = read[c, window.motion][window.begin : window.begin + longest]
            levels[lane, : len(part)], levels[lane, len(part) :] = part, part[-1]
            if pushed is not None:
                levels[lane] += pushed[c, w, :longest]
        now = np.empty((len(lanes), model.state_size))
        for lane, (c, w) in enumerate(lanes):
            if starts is not None:
                now[lane] = starts[c, w]
                continue
            now[lane] = np.nan
            with suppress(EquilibriumError):
                place = windows[w].motion, windows[w].begin
                near = self._near.get(place)
                now[lane] = self._near[place] = model.rod.equilibrium(levels[lane, 0], near=near)
        parameters = np.tile(model.nominal_parameters, (len(lanes), 1))
        for begin in range(0, longest, _CHUNK):
            rows = range(begin, min(begin + _CHUNK, longest))
            path = np.empty((len(rows), *now.shape))
            first = max(1, rows.start)
            if first > rows.start:
                path[0] = now
            if first < rows.stop:
                acting = levels[:, first - 1 : rows.stop]
                rolled = model.rollouts(now, acting, parameters, period)
                path[first - rows.start :] = np.moveaxis(rolled, 1, 0)
                now = np.asarray(rolled[:, -1], dtype=float)
            judged = windows[0].judged(rows)
            self._look(candidates, models, lanes, judged, path[judged - begin], levels, found)
            for place, row in enumerate(kept):
                if row in rows:
                    for lane, (c, w) in enumerate(lanes):
                        states[c, w, place] = path[row - begin, lane]
            self._work.spend(_seconds(len(rows), len(lanes), model.rod.total_intervals))

    def _look(self, candidates, models, lanes, rows, path, levels, found):
        """Fills `found` with what is seen of a path (K, lanes, nx)."""
        owner = np.array([c for c, _ in lanes])
        if not len(rows):
            return
        for c, model in models.items():
            mine = np.flatnonzero(owner == c)
            states = path[:, mine].reshape(-1, path.shape[2])
            acts = np.moveaxis(levels[mine][:, rows], 1, 0).reshape(len(states), -1)
            known = np.isfinite(states).all(axis=1)
            if not known.any():
                continue
            values = seen(model, self.groups, states[known], acts[known])
            for g, group in enumerate(self.groups):
                whole = np.full((len(states), 3), np.nan)
                whole[known] = candidates[c].recorded.as_recorded(group, values[group.name])
                whole = whole.reshape(len(rows), len(mine), 3)
                for place, lane in enumerate(mine.tolist()):
                    found[c, lanes[lane][1], rows, g] = whole[:, place]

    def from_true_starts(
        self,
        actuation: Actuation,
        noise: Mapping[str, float],
        memory: float,
        horizon: float,
        every: float,
        pushed: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predictions from states that agree with what was measured just before.

        At each start a rod has run from the beginning of its trial; if it is pushed, then for
        `_PAST` under inputs that are off by what makes it agree best with the samples of that time,
        most with the last ones. By as much as it is off there its predictions are moved. Afterwards
        inputs and predictions are less and less off, as errors of whole trials are forgotten; but
        without a push predictions stay off by what has lasted for seconds, as where cameras were
        moved.

        Args:
            actuation: that is judged.
            noise: by name of group [m].
            memory: over which errors are forgotten [s].
            horizon: of a prediction [s].
            every: from one start to the next [s].
            pushed: whether inputs are off before a start.

        Returns:
            (S, H, G, 3) predicted, and measured, 1 ... H periods after the starts.
        """
        self.remember(actuation)
        period = self.motions[0].period
        past, ahead = max(2, round(_PAST / period)), max(1, round(horizon / period))
        step = max(1, round(every / period))
        rows = list(range(past, max(map(len, self.motions)) - past - ahead, step))
        (seen_whole,), path = self.along([actuation], self.whole, kept=rows)
        off_whole = self.measured(self.whole) - seen_whole
        places = [
            (number, k)
            for number, motion in enumerate(self.motions)
            for k, row in enumerate(rows)
            if row + past + ahead < len(motion)
        ]
        starts = [Window(number, rows[k], past + ahead + 1, 0) for number, k in places]
        if not starts:
            return (np.empty((0, ahead, len(self.groups), 3)),) * 2
        measured = self.measured(starts)
        at = np.array([path[0, number, k] for number, k in places])[None]
        spans = _OFF * rod_inputs(self.robot).range
        recent = np.exp(-0.5 * period * np.arange(past, -1, -1) / _RECENT)
        sizes = np.array([max(0.1 * noise[each.name], _FINEST) for each in self.groups])
        weights = recent[:, None, None] / sizes[:, None]
        shape = np.exp(-np.maximum(period * np.arange(-past, ahead + 1), 0.0) / memory)[:, None]
        off = np.zeros((len(starts), len(spans)))
        for _ in range(2 if pushed else 0):
            pushes = np.stack([off, *(off + 0.05 * row for row in np.diag(spans))])[:, :, None]
            lanes = np.repeat(at, len(pushes), axis=0)
            short = [each._replace(rows=past + 1) for each in starts]
            paths, _ = self.along([actuation] * len(pushes), short, lanes, pushes * shape)
            for s in range(len(starts)):
                left = (weights * (paths[0, s] - measured[s, : past + 1])).ravel()
                slopes = (weights * (paths[1:, s] - paths[0, s])).reshape(len(spans), -1) / 0.05
                known = np.isfinite(left) & np.isfinite(slopes).all(axis=0)
                square = slopes[:, known] @ slopes[:, known].T + np.eye(len(spans))
                gradient = slopes[:, known] @ left[known] + off[s] / spans
                off[s] -= spans * np.linalg.solve(square, gradient)
        found = self.along([actuation], starts, at, off[None, :, None] * shape)[0][0]
        left = (measured - found)[:, : past + 1]
        weights = np.exp(-period * np.arange(past, -1, -1) / _LAST)
        last = weights[:, None, None] * np.isfinite(left)
        mean = np.sum(last * np.nan_to_num(left), axis=1) / np.maximum(last.sum(axis=1), 1e-9)
        lasting = np.zeros_like(mean)
        if not pushed:
            lasting[:] = [_lasting(off_whole[n, : rows[k] + past + 1], period) for n, k in places]
        moved = lasting[:, None] + (mean - lasting)[:, None] * shape[past + 1 :, :, None]
        return found[:, past + 1 :] + moved, measured[:, past + 1 :]


class _Search:
    """Cost and derivative of one fit.

    Attributes:
        unknowns: (P,).
        groups: (G,).
        windows: that are fitted to.
        noise: (G,) of a number [m].
        centre: (P,) of the priors.
        lost: windows in which the rod is lost, at the last values that were evaluated.
        first_seconds, step_seconds: of the choice among first guesses, and of a step, on a usual
            machine.
    """

    def __init__(
        self, robot: Robot, motions: Sequence[Motion], groups: tuple[Group, ...],
        unknowns: tuple[Unknown, ...], most: int, work: Work, known: Mapping[str, float],
    ) -> None:  # fmt: skip
        self.unknowns, self.groups = unknowns, groups
        self.windows, self.lost = windows_of(motions, most), 0
        self._robot, self._work, self._known = robot, work, known
        self._simulation = Simulation(robot, motions, groups, work)
        self._measured = self._simulation.measured(self.windows)
        self._priors = np.array([each.deviation for each in unknowns])
        self.centre = np.zeros(len(unknowns))
        extent = _rms(self._measured - known_mean(self._measured, (0, 1)))
        self._lost = np.maximum(_LOST * robot.length, 2.0 * extent)
        least = [max(each.noise, _FINEST) for each in groups]
        self.noise = np.maximum(least, 0.1 * extent)
        self._thinned = np.sqrt(min(1.0, max(motions[0].period, JUDGED_EVERY) / CORRELATED))
        rows, intervals = self.windows[0].rows, _rod(robot).total_intervals
        payloads = Counter(motions[each.motion].payload for each in self.windows)
        # candidates whose robots have one body are simulated together
        own = sum(_moves_body(robot, each) for each in unknowns)
        steps = (
            (STARTS, STARTS if own else 1),
            (1 + len(unknowns), 1 + own),
            (len(_DAMPINGS), len(_DAMPINGS) if own else 1),
        )
        self.first_seconds, *each_step = (
            sum(_seconds(rows, count * lanes, intervals, bodies) for lanes in payloads.values())
            for count, bodies in steps
        )
        self.step_seconds = sum(each_step)

    def by_name(self, values: np.ndarray) -> dict[str, float]:
        """Of values (P,), and what is known beside them."""
        found = {
            each.name: self._known.get(each.name, 0.0) + value
            for each, value in zip(self.unknowns, values.tolist(), strict=True)
        }
        return {**self._known, **found}

    def first(self, draws: np.random.Generator) -> np.ndarray:
        """(P,) where a search should begin: the best of some first guesses."""
        factors = np.array([each.unit == FACTOR for each in self.unknowns])
        spread = _LIKELY * factors * self._priors
        guesses = spread * draws.standard_normal((STARTS, len(self.unknowns)))
        guesses[0] = 0.0
        turned_by = np.zeros(len(self.unknowns))
        with suppress(EquilibriumError):
            turned_by = self._turned()
        if turned_by.any():
            guesses[1] = 0.0
            guesses[1::2] += turned_by
        self.centre = turned_by * (np.arange(STARTS) % 2)[:, None]
        costs = (self.residuals(guesses) ** 2).sum(axis=1)
        ends = []
        for place in np.argsort(costs)[:2].tolist():
            self.centre = turned_by * (place % 2)
            values = self.best(guesses[place], _FIRST_STEPS)
            residual = self.residuals(values[None])[0]
            ends.append((float(residual @ residual), values, self.centre))
        _, begin, self.centre = min(ends, key=lambda end: end[0])
        return begin

    def _turned(self) -> np.ndarray:
        """(P,) values at which inputs point where the recording says."""
        group, begin = self.groups[0], actuation_as(self._robot, self._known).recorded
        seen_in = [each for each in self._simulation.motions if group.name in each.outputs]
        inputs = np.vstack([each.inputs for each in seen_in])
        measured = np.vstack([each.outputs[group.name] for each in seen_in])
        return turned(
            _model(begin.robot), group, inputs, begin.in_base_frame(measured), self.unknowns
        )

    def best(self, values: np.ndarray, steps: int) -> np.ndarray:
        """(P,) of the least cost, from other ones, in so many steps at most."""
        damping, left = 0.0, min(steps, _USUAL)
        for _ in range(steps):
            if not left:
                left = 1
                self._work.expected += self.step_seconds
            left -= 1
            self._simulation.remember(actuation_as(self._robot, self.by_name(values)))
            residual, jacobian = self.both(values)
            square, gradient = jacobian.T @ jacobian, jacobian.T @ residual
            cost = residual @ residual
            # at first as if what is left were noise
            damping = damping or max(1.0, float(cost / np.count_nonzero(residual)))
            tried = np.array([
                values - np.linalg.solve(square + d * np.diag(1.0 / self._priors**2), gradient)
                for d in damping * np.array(_DAMPINGS)
            ])  # fmt: skip
            costs = (self.residuals(tried) ** 2).sum(axis=1)
            chosen = int(np.argmin(costs))
            if costs[chosen] < cost:
                values = tried[chosen]
                damping = float(np.clip(damping * _DAMPINGS[chosen], 1e-4, 1e6))
            if cost - costs[chosen] < _DONE * cost:
                self._work.expected -= self.step_seconds * left
                break
        return values

    def estimate_noise(self, values: np.ndarray) -> None:
        """From what values (P,) leave of each group."""
        rms = _rms(self._seen(values[None])[0] - self._measured)
        self.noise = np.maximum(rms, [max(each.noise, _FINEST) for each in self.groups])

    def memory(self, values: np.ndarray) -> float:
        """Until when the correlation of errors over whole motions has fallen to 1/e at values (P,)
        [s]."""
        simulation, found = self._simulation, actuation_as(self._robot, self.by_name(values))
        simulation.remember(found)
        whole, period = simulation.whole, simulation.motions[0].period
        every = max(1, round(JUDGED_EVERY / period))
        off = (simulation.along([found], whole)[0][0] - simulation.measured(whole))[:, ::every]
        known, off = np.isfinite(off), np.nan_to_num(off)
        rows = off.shape[1]
        for lag in range(rows):
            pairs = max(1, (known[:, lag:] & known[:, : rows - lag]).sum())
            product = (off[:, lag:] * off[:, : rows - lag]).sum() / pairs
            if not lag:
                begin = product
            elif product <= begin / np.e:
                break
        return float(lag * every * period)

    def both(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(R,) residual of values (P,), and (R, P) its derivative."""
        steps = _STEP * self._priors
        found = self.residuals(np.vstack((values, values + np.diag(steps))))
        return found[0], (found[1:] - found[0]).T / steps

    def residuals(self, candidates: np.ndarray) -> np.ndarray:
        """(C, R) of values (C, P): weighted errors, then how far off the first guess they are."""
        off = self._seen(candidates) - self._measured
        lost = np.isnan(off) & np.isfinite(self._measured)
        self.lost = int(lost[0].any(axis=(1, 2, 3)).sum())
        off = np.where(lost, self._lost[:, None], off) / self.noise[:, None]
        off = np.where(np.isfinite(self._measured), self._thinned * off, 0.0)
        apart = (candidates - self.centre) / self._priors
        return np.hstack((off.reshape(len(candidates), -1), apart))

    def _seen(self, candidates: np.ndarray) -> np.ndarray:
        made: list[Actuation | None] = []
        for values in candidates:
            try:
                made.append(actuation_as(self._robot, self.by_name(values)))
            except UserError:  # no robot is like that
                made.append(None)
        return self._simulation.along(made, self.windows)[0]


def _lasting(off: np.ndarray, period: float) -> np.ndarray:
    """(G, 3) what lasts of errors (T, G, 3) so long apart [s]: their mean, of the last ones most,
    as if `_DOUBT` without any had been seen as well."""
    weights = np.exp(-period * np.arange(len(off) - 1, -1, -1) / _LASTS)[:, None, None]
    weights = weights * np.isfinite(off)
    total = weights.sum(axis=0) + _DOUBT / period
    mean: np.ndarray = (weights * np.nan_to_num(off)).sum(axis=0) / total
    return mean


def _rms(values: np.ndarray) -> np.ndarray:
    """(G,) root mean squares of numbers (W, L, G, 3) that are known."""
    rms: np.ndarray = np.sqrt(known_mean(values**2, (0, 1, 3)))
    return rms


def distances(off: np.ndarray) -> np.ndarray:
    """(...) lengths of errors (..., 3), over the coordinates that were measured; NaN without."""
    known = np.isfinite(off)
    squares = np.where(known, off, 0.0) ** 2
    return np.where(known.any(axis=-1), np.sqrt(squares.sum(axis=-1)), np.nan)


def loaded(robot: Robot, mass: float) -> Robot:
    """A robot that carries a point mass [kg] at its tip cap's outer face, beside its payload.

    Raises:
        UserError: it cannot carry one.
    """
    if not mass:
        return robot
    content = content_of(robot)
    carried, here = robot.payload, (0.0, 0.0, robot.tip_cap_length)
    if carried is None or not carried.mass:
        content["payload"] = {"mass": mass, "centre_of_mass": here}
    else:
        whole = carried.mass + mass
        centre = (carried.mass * np.array(carried.centre_of_mass) + mass * np.array(here)) / whole
        content["payload"] = carried.model_dump() | {
            "mass": whole, "centre_of_mass": tuple(centre.tolist()),
        }  # fmt: skip
    return Robot.model_validate(content)


_SECONDS, _ALONE = 2.5e-6, 12
"""Of a usual machine, for a step of one interval of a rod among many; as many rods as there are,
and so many, is what rods of one body cost."""


def _seconds(rows: int, lanes: int, intervals: int, bodies: int = 1) -> float:
    """Of a usual machine, for rods of so many bodies."""
    return _SECONDS * rows * (lanes + _ALONE * bodies) * intervals


def _body_of(robot: Robot) -> str:
    """What of a robot its motion depends on."""
    content = content_of(robot)
    del content["sensors"]
    return json.dumps(content, sort_keys=True)


def _moves_body(robot: Robot, unknown: Unknown) -> bool:
    try:
        moved = recorded_as(robot, {unknown.name: _STEP * unknown.deviation}).robot
    except UserError:  # no robot is like that
        return True
    return _body_of(moved) != _body_of(robot)


def _rod(robot: Robot) -> CosseratRod:
    return CosseratRod(robot, max(2, INTERVALS // len(robot.segments)))


def _model(robot: Robot) -> RodPrediction:
    return RodPrediction(_rod(robot), substeps=1)
