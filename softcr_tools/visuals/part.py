"""The node `visuals` beside a system."""

from dataclasses import replace

from softcr_runtime.blocks.system import Parameters, Part, System
from softcr_tools.running.run_options import RunOptions

NAME, PLACE = "visuals", "softcr_tools.nodes.visuals"


def with_visuals(system: System, options: RunOptions) -> System:
    """The system with frames and pictures for other programs, unless the options say not to.

    The node comes after the recorder, which so has them from the beginning, and the run goes on
    where it dies. On a bench the calibration of the cameras tells where the base is.
    """
    recorder, *others = system.parts
    mode = recorder.parameters["mode"]
    if options.visuals == "off" or (options.visuals == "auto" and mode == "lockstep"):
        return system
    parameters: Parameters = options.of_every_node | {"mode": mode}
    if calibration := options.of("optitrack").get("calibration"):
        parameters["calibration"] = calibration
    part = Part(NAME, PLACE, parameters | options.of(NAME), spare=True)
    first, *later = system.activation
    return replace(system, parts=(recorder, part, *others), activation=(first, part.name, *later))
