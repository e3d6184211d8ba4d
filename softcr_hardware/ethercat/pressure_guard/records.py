"""Plain records that the compiled detectors work on: constants of a station, state of a channel."""

from typing import Any

import numpy as np

CONSTANTS = np.dtype(
    [
        # the valve [V] and its flow
        ("side", "f8"),  # +1 where more volts fill, -1 where they exhaust
        ("closed", "f8"),
        ("dead_band", "f8"),
        ("fill_span", "f8"),  # from the dead band's edge to fully open
        ("exhaust_span", "f8"),
        ("lag", "f8"),  # [s]
        ("range", "f8"),  # of a pressure regulator over fill_span [Pa]; 0 for a flow valve
        ("supply", "f8"),  # [Pa]
        ("fill_rate", "f8"),  # [1/s]
        ("exhaust_rate", "f8"),  # [1/s]
        ("maximum", "f8"),  # highest command [Pa]
        # thresholds, as in GuardSettings
        ("flow_tolerance", "f8"),
        ("opening_tolerance", "f8"),
        ("equal_samples", "i8"),
        ("toggle_age", "f8"),
        ("fast_leak", "f8"),
        ("fast_threshold", "f8"),
        ("slow_leak", "f8"),
        ("slow_threshold", "f8"),
        ("least_opening", "f8"),
        ("pulse_size", "f8"),
        ("budget", "f8"),
        ("ping_misses", "i8"),
        ("ping_every", "f8"),
        ("follow_base", "f8"),
        ("follow_share", "f8"),
        ("follow_time", "f8"),
        ("overpressure", "f8"),
        ("second_difference", "f8"),
        ("regulated", "b1"),  # whether measured pressures steer the valves
    ]
)
"""What does not change while the valves are driven, but for a supply that a gauge measures."""

CHANNEL = np.dtype(
    [
        # freshness
        ("count", "f8"),  # last reading on the wire [V]
        ("toggle", "b1"),
        ("equal", "i8"),  # new samples with this very reading
        ("still", "f8"),  # time since the last new sample [s]
        # valve and flow model
        ("position", "f8"),  # of the lagging valve, as the voltage that would hold it there [V]
        ("opening", "f8"),  # modelled, mean over the last cycle
        ("flow", "f8"),  # modelled change of pressure in the last cycle [Pa]
        ("rise_margin", "f8"),  # how much more than that may be true [Pa]
        ("fall_margin", "f8"),  # how much less
        ("pressure", "f8"),  # last new reading [Pa]; NaN before the first
        ("predicted", "f8"),  # the same, with the modelled flow since [Pa]
        # flow residual
        ("fast", "f8"),
        ("fast_up", "f8"),
        ("fast_down", "f8"),
        ("slow", "f8"),
        ("slow_up", "f8"),
        ("slow_down", "f8"),
        ("unseen", "f8"),  # low-passed air that the sensor does not show [thresholds]
        ("surplus", "f8"),  # low-passed air that nobody let in [thresholds]
        ("nearest", "f8"),  # the largest of both since the valves were enabled
        # pulses
        ("owed", "f8"),  # opening wanted and not delivered, times time [s]
        ("pulse_left", "f8"),  # [s]
        ("pulse_side", "f8"),
        # air budget and its evidence
        ("highest", "f8"),  # pressure that the openings alone can have made [Pa]
        ("unproven", "f8"),  # time since the last evidence [s]
        ("still_motion", "f8"),  # time since reading and model last agreed in motion [s]
        ("model_wave", "f8"),  # high-passed model [Pa]
        ("sensor_wave", "f8"),
        ("model_power", "f8"),  # [Pa^2]
        ("shared_power", "f8"),
        # ping
        ("ping_phase", "i8"),
        ("ping_time", "f8"),  # in this phase [s]
        ("ping_before", "f8"),  # mean reading before [Pa]
        ("ping_sum", "f8"),
        ("ping_samples", "i8"),
        ("ping_model", "f8"),  # modelled change since the middle of the first mean [Pa]
        ("ping_middle", "f8"),  # the same at the middle of the second mean, while it is taken
        ("ping_pause", "f8"),  # until the next one may begin [s]
        ("missed", "i8"),  # pings in a row
        ("pings", "i8"),
        # following the command
        ("expected", "f8"),  # last expectation [Pa]
        ("motion", "f8"),  # leaky sum of its changes [Pa]
        ("astray", "f8"),  # time beyond the bound [s]
        ("excused", "f8"),  # time left that the bound is not looked at [s]
        # limit and second sensor
        ("over", "i8"),
        ("difference", "f8"),  # low-passed [Pa]
        ("apart", "i8"),
        ("paired", "b1"),  # whether there is a second sensor
        ("alone", "f8"),  # time since it last said something [s]
        ("fault", "i8"),  # PressureFault of the last cycle
    ]
)
"""What the detectors remember of one chamber."""

Record = Any
"""A row of either; numba compiles for the record's type, which Python's types cannot name."""
