"""The air supply against the robot's limit: what a valve that sticks open may do."""

from softcr_models.errors import UserError
from softcr_tools.doctor.finding import FAIL, WARN, Finding, judged


def air_supply(name: str, robot: str) -> Finding:
    """As the station file has it."""
    from softcr_hardware.ethercat.supply import check_supply, recommended_supply
    from softcr_hardware.ethercat.terminals import load_station
    from softcr_models.robots.robot import load_robot

    try:
        known = load_robot(robot)
        station = load_station(name, known.chamber_names)
    except UserError as error:
        return Finding("air supply", FAIL, str(error), f"edit {name}")
    maximum, refused = known.pressure_limits.maximum, ""
    try:
        check_supply(station, maximum)
    except UserError as error:
        refused = str(error)
    equipment = [
        "dump valve" if station.has_dump_valve else "no dump valve",
        "supply gauge" if station.supply.gauge else "no supply gauge",
        f"second sensors {sum(each.second_sensor is not None for each in station.chambers)}",
    ]
    recommended = recommended_supply(maximum)
    return check_air_supply(station.flow.supply, maximum, recommended, refused, equipment)


def check_air_supply(
    supply: float, maximum: float, recommended: float, refused: str, equipment: list[str]
) -> Finding:
    """The regulator is the bound of every fault that software cannot vent.

    Args:
        supply: of the regulator [Pa].
        maximum: highest command [Pa].
        recommended: for the regulator [Pa].
        refused: why this supply is refused; empty if it is not.
        equipment: what bounds and measures it.
    """
    found = f"{supply / 1e3:.0f} kPa, highest command {maximum / 1e3:.0f} kPa; "
    found += ", ".join(equipment)
    advice = (
        f"set the regulator and flow.supply of the station file to {recommended / 1e3:.0f} kPa, "
        f"the manifold's relief valve to crack below {recommended / 1e3 + 3:.0f} kPa"
    )
    stuck = f"{found}: a valve that sticks open fills its chamber to {supply / 1e3:.0f} kPa"
    return judged("air supply", found,
        (refused, FAIL, refused, advice),
        (supply > recommended + 1.0, WARN, stuck, advice)
    )  # fmt: skip
