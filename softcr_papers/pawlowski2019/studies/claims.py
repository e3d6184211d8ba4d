"""What Pawlowski (2019) claims, as rows of our tables."""

from softcr_papers.pawlowski2019.studies import dynamics, lookahead, quasi_static, table_4_1
from softcr_papers.pawlowski2019.studies.columns import COLUMNS, IMPLICIT
from softcr_papers.pawlowski2019.studies.targets import RADII
from softcr_studies.frame.claims import Claim

_TABLE = "pawlowski2019/table-4-1"
_PREDICTIVE = tuple(column.name for column in COLUMNS)
_SCHEME = tuple(column.name for column in IMPLICIT)
_LEARNT = ("DDPG", "GPS")
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
        _TABLE, table_4_1.FIGURE, (table_4_1.ANY,), _PREDICTIVE, at_least=True,
        why="a goal is any point of the box of all tips in motion, which is also the policies'",
    ),
    Claim(
        "They reach and hold points at rest (Table 4.1)",
        _TABLE, table_4_1.FIGURE, (table_4_1.STATIC,), _PREDICTIVE, at_least=True,
    ),
    Claim(
        "They follow the middle circle (Table 4.1)",
        _TABLE, table_4_1.FIGURE, (table_4_1.CIRCLE,), _PREDICTIVE,
    ),
    Claim(
        "The same on the thesis's own scheme: implicit, the model is the plant",
        _TABLE, table_4_1.FIGURE, (table_4_1.CIRCLE,), _SCHEME,
    ),
    Claim(
        "On it NLSQ with steps of 0.1 s is faster than real time, with two steps ahead",
        _TABLE, table_4_1.FIGURE, (table_4_1.RATIO,), _SCHEME[1:],
    ),
    Claim(
        "One step ahead is enough for it (Sec. 4.4.2), error on the middle circle",
        "pawlowski2019/lookahead", "mean tip error", bound=6.90,
        methods=(f"{lookahead.SCHEME}, 1 ahead", lookahead.DAMPED),
        why="each input is made for the end of its own step alone and leaves a swing behind that "
        "the next one must make up for; the thesis prints no weights",
    ),
    Claim(
        "DDPG and GPS learn to reach a single point (RL1)",
        _TABLE, table_4_1.FIGURE, (table_4_1.POINT,), _LEARNT, at_least=True,
    ),
    Claim(
        "One policy reaches any point (RL2), DDPG",
        "pawlowski2019/learning", "goals reached, strict box", methods=("DDPG",), at_least=True,
    ),
    Claim(
        "One policy reaches any point (RL2), GPS with exact derivatives, and as in the thesis",
        "pawlowski2019/learning", "goals reached, strict box", methods=("GPS", "fitted GPS"),
        at_least=True, why="the goals are those of our box, the thesis does not print its own",
    ),
    Claim(
        "A policy follows trajectories (RL3), tried on the middle circle",
        _TABLE, table_4_1.FIGURE, (table_4_1.CIRCLE,), _LEARNT,
    ),
    Claim(
        "Policies answer a hundred times faster than real time",
        _TABLE, table_4_1.FIGURE, (table_4_1.RATIO,), _LEARNT,
    ),
)  # fmt: skip
