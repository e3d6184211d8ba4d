"""The rod's CUDA kernels as machine code: what they take, and how long one should run.

Nothing here needs a GPU.
"""

from functools import cache
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction, RodSettings
from softcr_models.robots.robot import load_robot
from softcr_studies.frame.study import Result
from softcr_studies.speed.gpu_batches import HORIZON, GpuEffort
from softcr_studies.speed.issue_model import WARP, walk
from softcr_studies.speed.machine_code import Instruction, disassembled, loop_depths
from softcr_studies.speed.motion import PERIOD
from softcr_studies.speed.timing import Skipped

ROBOTS = ("licher2025", "licher2025_chain", "two_segments", "tendon_arm")
ARCHITECTURES = ("sm_90", "sm_80", "sm_120")
KERNEL = "rollout_float"
CLOCK, SCHEDULERS = 1.98e9, 528
"""Of an H100: [Hz], [-]."""
_MODELLED = "sm_90"
_PARAMETERS = 0x210
"""Where a kernel's parameters begin in its constants on sm_90 [bytes]; four pointers come first."""
_POINTERS = 4 * 8
SUBSTEPS = 2


def code_of(robot: str, architecture: str, count: int, effort: GpuEffort) -> Result:
    """Of the rollout of a robot's rod in single precision.

    The estimate is that of `issue_model` for one warp of a batch of so many candidates, which has
    fewer warps than an H100 has schedulers. It is too low: licher2025's rollout took 0.209 ms on
    an H200, where this model says 0.137 ms. Its instructions are right: of an earlier text
    130 400, where a profiler counted 133 700; what is missing is time per instruction. Nothing was
    fitted.

    Returns:
        registers, instructions, doubles, those of them in loops within the loop over attempts [-];
        stack, spills [bytes]; for sm_90 estimate [ms]. Where nvdisasm is missing, what the
        compiler says alone.
    """
    from softcr_models.cuda.compiler import compiled
    from softcr_models.cuda.source import lanes_of, source_of

    rod = _rod(robot)
    try:
        made = compiled(source_of(rod, np.float32), architecture)
    except UserError as error:
        raise Skipped(str(error)) from None
    takes = made.resources[KERNEL]
    told = {"registers": takes.registers, "stack": takes.stack, "spills": takes.spilled}
    try:
        program = disassembled(made.cubin)[KERNEL]
    except Skipped as reason:
        return {**told, "note": str(reason)}
    told |= {"instructions": len(program), "doubles": doubles_in_time_loop(program)}
    if architecture != _MODELLED:
        return told
    warps = -(-count * lanes_of(rod) // WARP)
    if warps > SCHEDULERS:
        return told
    done = walk(program, constants(count))
    note = (
        f"estimate, not measured: {done.instructions} instructions of one of {warps} warps, "
        f"{done.cycles} cycles at {CLOCK / 1e9:.2f} GHz, without the time to fetch instructions"
    )
    return {**told, "estimate": 1e3 * done.cycles / CLOCK, "note": note}


def doubles_in_time_loop(program: list[Instruction]) -> int:
    """Instructions in double precision but those that surely run once at most."""
    return sum(
        one.in_double_precision and (depth is None or depth > 0)
        for one, depth in zip(program, loop_depths(program), strict=True)
    )


def constants(count: int) -> dict[int, int]:
    """Constants of a launch: offset [bytes] -> 32 bits. Tips of so many candidates from one state
    over the horizon, with two sub-steps and one linearisation a step."""
    from softcr_models.cuda.launcher import Call

    call = Call.of(
        PERIOD, 1.0, batch=count, steps=HORIZON, one_state=1, one_parameters=1, pieces=1, fresh=0,
        tips=1, again=0, substeps=SUBSTEPS, doublings=0,
    )  # fmt: skip
    words = np.frombuffer(bytes(call), np.uint32)
    first = _PARAMETERS + _POINTERS
    return {first + 4 * place: int(word) for place, word in enumerate(words)}


@cache
def _rod(robot: str) -> Any:
    return RodPrediction.of_robot(load_robot(robot), RodSettings(substeps=SUBSTEPS)).rod
