"""What Pawlowski (2019) claims, as rows of our tables."""

from softcr_papers.pawlowski2019.studies import (
    dynamics,
    learning,
    lookahead,
    mpc,
    other_plants,
    quasi_static,
)
from softcr_papers.pawlowski2019.studies.columns import COLUMNS, IMPLICIT
from softcr_papers.pawlowski2019.studies.targets import RADII
from softcr_studies.frame.claims import Claim

_MPC, _LEARNING, CIRCLE = "pawlowski2019/mpc", "pawlowski2019/learning", "middle circle"
_PREDICTIVE = tuple(column.name for column in COLUMNS)
_SCHEME = tuple(column.name for column in IMPLICIT)
_LEARNT = ("DDPG", "GPS")
_RATIO = other_plants.RATIO
LAWS = tuple(
    f"{dynamics.LAW}, {of}" for of in ("E = 100 kPa", "E = 1000 kPa", "steps of 0.05 s",
                                       "steps of 0.1 s")
)  # fmt: skip
CLAIMS = (
    Claim(
        "Runge-Kutta-Munthe-Kaas schemes keep rotations orthogonal to rounding (Sec. 2.7)",
        "pawlowski2019/statics", "largest error of a determinant",
    ),
    Claim(
        "What an explicit and an implicit step of 20 points cost (Sec. 4.2)",
        "pawlowski2019/dynamics", "processor time, 20 points",
    ),
    Claim(
        "Points of a rod in real time, by the laws of time (4.18) to (4.21)",
        "pawlowski2019/dynamics", LAWS, at_least=True,
    ),
    Claim(
        "Steps in which the quasi-static controller reaches a point to 1 % (Sec. 4.1)",
        "pawlowski2019/quasi-static", quasi_static.STEPS,
        cases=(quasi_static.POINTS,), methods=(quasi_static.BOXED,),
        why="points and tendons are ours; the difference is small beside the printed deviation",
    ),
    Claim(
        "It follows circles to less than 1 % of the length (Fig. 4.2), one update of gain 0.2 for "
        "each of 100 samples",
        "pawlowski2019/quasi-static", quasi_static.ERROR,
        cases=tuple(RADII), methods=(quasi_static.LITERAL.name,),
        why="the tip lags behind by five samples; 500 samples, gain 1, or the reference's motion "
        "added keep it (further rows)",
    ),
    Claim(
        "Predictive controllers reach points in motion (Table 4.1)",
        _MPC, mpc.REACHED, (mpc.REACH,), _PREDICTIVE, at_least=True,
    ),
    Claim(
        "They reach and hold points at rest (Table 4.1)",
        _MPC, mpc.REACHED, (mpc.HOLD,), _PREDICTIVE, at_least=True,
    ),
    Claim(
        "They follow the middle circle (Table 4.1), ours with an estimated state",
        _MPC, mpc.ERROR, (mpc.ESTIMATED,), _PREDICTIVE,
    ),
    Claim(
        "The thesis's own scheme, implicit, model and plant in one: the middle circle",
        _MPC, mpc.ERROR, (CIRCLE,), _SCHEME,
    ),
    Claim(
        "... points in motion and at rest",
        _MPC, mpc.REACHED, (mpc.REACH, mpc.HOLD), _SCHEME, at_least=True,
        why="with steps of 0.1 s and few of them ahead not all points are held or reached; the "
        "thesis prints neither steps nor weights",
    ),
    Claim(
        "... with steps of 0.1 s faster than real time, here with two steps ahead",
        _MPC, mpc.RATIO, (CIRCLE,), _SCHEME[1:],
    ),
    Claim(
        "... and one step ahead is enough (Sec. 4.4.2), the middle circle",
        "pawlowski2019/lookahead", mpc.ERROR, bound=6.90,
        methods=(f"{lookahead.SCHEME}, 1 ahead", lookahead.DAMPED),
        why="each input is made for the end of its own step alone and leaves a swing behind that "
        "the next one must make up for; the thesis prints no weights",
    ),
    Claim(
        "DDPG and GPS learn to reach a single point (RL1)",
        _LEARNING, learning.REACHED, (learning.POINT,), _LEARNT, at_least=True,
    ),
    Claim(
        "One policy reaches any point (RL2), DDPG",
        _LEARNING, learning.STRICTLY, (learning.ANY,), ("DDPG",), at_least=True,
    ),
    Claim(
        "One policy reaches any point (RL2), GPS with exact derivatives, and as in the thesis",
        _LEARNING, learning.STRICTLY, (learning.ANY,), ("GPS", "fitted GPS"), at_least=True,
        why="goals are of the box of all tips in motion; the thesis does not print its own box",
    ),
    Claim(
        "A policy follows trajectories (RL3), tried on the middle circle",
        _LEARNING, learning.AROUND, (learning.TRACK,), _LEARNT,
    ),
    Claim(
        "Policies answer a hundred times faster than real time",
        _LEARNING, learning.RATIO, (learning.ANY,), _LEARNT, bound=0.01,
    ),
    Claim(
        "Beyond the thesis: on exact beams NLSQ and a policy leave at most twice the error of the "
        "model's own equations",
        "pawlowski2019/other-plants",
        (_RATIO.format(other_plants.AROUND), _RATIO.format(other_plants.LEAST)), bound=2.0,
        why="a length that the filter does not know is the tip's error",
    ),
)  # fmt: skip
