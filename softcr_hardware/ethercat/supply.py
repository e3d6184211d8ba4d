"""The pressure of the supply against the robot's limit: what is recommended, and what is refused.

A valve that sticks open fills its chamber to the supply, whatever software does: its own exhaust is
what is stuck. So the supply's regulator is the bound of every single fault.
"""

from softcr_hardware.ethercat.terminals import Station
from softcr_models.errors import UserError

RECOMMENDED_MARGIN = 5e3
"""Of the regulator above the highest command [Pa]; the relief valve of the manifold cracks below
3 kPa more."""
HIGHEST_MARGIN = 1e4
"""A supply further above the highest command than this is refused without a dump valve [Pa]."""
COMMAND_MARGIN = 3e3
"""Commands stay so far below the supply [Pa]: what flows in at all still says something."""


def recommended_supply(maximum: float) -> float:
    """What to set the regulator to [Pa], for commands up to `maximum` [Pa]."""
    return maximum + RECOMMENDED_MARGIN


def highest_command(supply: float) -> float:
    """Highest pressure [Pa] that may be commanded at a supply [Pa]."""
    return supply - COMMAND_MARGIN


def check_supply(station: Station, maximum: float) -> None:
    """Whether a valve that sticks open may fill a chamber to this supply.

    Args:
        station: whose supply it is.
        maximum: highest command [Pa].

    Raises:
        UserError: it may not, and there is no dump valve, nor has the operator accepted it.
    """
    accepted = station.has_dump_valve or station.supply.accept_high
    if station.flow.supply <= maximum + HIGHEST_MARGIN or accepted:
        return
    raise UserError(
        f"station: flow.supply {station.flow.supply / 1e3:.0f} kPa would fill a chamber whose "
        f"valve sticks open; must be at most {(maximum + HIGHEST_MARGIN) / 1e3:.0f} kPa "
        f"(recommended {recommended_supply(maximum) / 1e3:.0f}), or supply.dump_valve or "
        "supply.accept_high true, or a stop_chain.dump_valve_output"
    )
