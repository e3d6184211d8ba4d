"""A station with digital terminals: emergency stop, 24 V monitor, dump valve."""

from softcr_hardware.ethercat.terminals import Station, load_station

CHAIN = {
    "stop_input": {"terminal": 4, "channel": 1},
    "supply_24v_input": {"terminal": 5, "channel": 2},
    "dump_valve_output": {"terminal": 7, "channel": 3},
    "fill_time": 0.3,
}


def stopping_content(supply=1.05e5, arming_test=False):
    """As a file has it: two half bytes of inputs in one byte, and likewise two of outputs."""
    content = load_station("licher2025").model_dump(mode="json", exclude_defaults=True)
    content["terminals"] = [
        {"name": name}
        for name in ("EK1100", "EL3164", "EL4004", "EL1004", "EL1004", "EL2004", "EL2004")
    ]
    content["stop_chain"] = CHAIN
    content["flow"]["supply"] = supply
    content["arming_test"] = arming_test
    return content


def stopping_station(**changes):
    """The same, validated."""
    return Station.model_validate(stopping_content(**changes))
