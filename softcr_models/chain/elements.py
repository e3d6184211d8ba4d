"""Which parameters a chain of pressures has, where they begin, and how they may walk."""

from collections.abc import Iterator
from dataclasses import replace

from softcr_models.chain import acting
from softcr_models.model import Parameter
from softcr_models.robots.pressure_chain import PressureChain

_LARGEST_WEIGHT = 2.0
"""Beyond what their sum may be: a bound that is met moves the mean of what is estimated with it."""


def elements_of(chain: PressureChain, count: int) -> Iterator[tuple[int, tuple[Parameter, ...]]]:
    """Place in `acting.PARTS` and parameters of each element that is on, in their order.

    The file's values are nominal, and zero where it has none.

    Deviations at the start decide what a chain costs a robot that does not need it, and were chosen
    together with the random walks for that.
    """
    given = dict(chain.values)

    def begun(parameter: Parameter) -> Parameter:
        return replace(parameter, nominal=given.get(parameter.name, 0.0))

    chambers, stops = range(1, count + 1), range(1, 1 + len(chain.hysteresis_radii))
    if stops:
        shared = (_weight(f"hysteresis_{j}", 0.3, opened=0.3) for j in stops)
        yield acting.HYSTERESIS, tuple(map(begun, shared))
        own = (_weight(f"hysteresis_{j}_of_{i}", 0.03, opened=0.3) for i in chambers for j in stops)
        yield acting.DEVIATIONS, tuple(map(begun, own))
    if chain.hose_time:
        hoses = (_weight(f"hose_{i}", 0.15, opened=0.5) for i in chambers)
        yield acting.HOSE, tuple(map(begun, hoses))
    if chain.creep_time:
        yield acting.CREEP, (begun(_weight("creep", 0.02, opened=0.05)),)
    if chain.chamber_angles:
        angles = (
            Parameter(
                f"chamber_angle_{i}", "rad", 0.0, -0.5, 0.5, "linear", noise=1e-5, deviation=0.02,
                opened=0.05, opens="slow",
            )
            for i in chambers
        )  # fmt: skip
        yield acting.ANGLES, tuple(map(begun, angles))
    if chain.curvature_stiffness:
        yield acting.STIFFNESS, (begun(_weight("curvature_stiffness", 0.1, opened=0.1)),)
    if chain.marker_offset:
        offsets = (
            Parameter(
                f"marker_offset_{axis}", "m", 0.0, -0.02, 0.02, "linear", noise=1e-4,
                deviation=0.5, scale=1e-3, opened=2.0, opens="slow",
            )
            for axis in "xyz"
        )  # fmt: skip
        yield acting.MARKER, tuple(map(begun, offsets))


def _weight(name: str, deviation: float, *, opened: float) -> Parameter:
    return Parameter(
        name, "-", 0.0, -_LARGEST_WEIGHT, _LARGEST_WEIGHT, "linear", noise=1e-4,
        deviation=deviation, opened=opened, opens="slow",
    )  # fmt: skip
