"""An A-PCC controller steers the Lagrangian arm to a setpoint: Dalenberg, Sec. V-B, VI-B, App. A.

The arm has more bodies than the controller's model, a payload and gravity. It settles under them
with its tendons held; then the controller sees poses at 50 Hz, as motion capture does, and the
tendons' loops follow its answer from the next frame on.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softcr_papers.dalenberg2024.apcc import ApccSettings
from softcr_papers.dalenberg2024.apcc.block import (
    ESTIMATE,
    PLAN,
    POSES,
    ApccBlock,
    ApccControllerSettings,
)
from softcr_papers.dalenberg2024.apcc.inverse_kinematics import elongation_cost
from softcr_papers.dalenberg2024.arm import Arm
from softcr_papers.dalenberg2024.arm_dynamics import TendonGains
from softcr_papers.dalenberg2024.arm_plant import ArmPlantSettings, TendonArmPlant
from softcr_papers.dalenberg2024.shape_error import shape_error
from softcr_papers.dalenberg2024.tip_block import TipReferenceBlock
from softcr_papers.dalenberg2024.tip_references import TipReference
from softcr_runtime.blocks.block import BlockBase, Output
from softcr_runtime.blocks.virtual_run import run_blocks
from softcr_runtime.console.panels import panels
from softcr_runtime.settings.node_settings import build_settings
from softcr_studies.frame.study import Result
from softcr_studies.loops.closed_loop import SIMULATOR, common, simulator

FIXED = "fixed lengths"
PERIOD = 0.02
LOST = 1.0  # a run whose tip error exceeds this has diverged [m]

_SHAPES_EVERY = 25  # ticks
_SERIES = (
    "times", "errors", "costs", "mapping", "lengths", "linear", "angular", "shapes", "curves",
)  # fmt: skip


def law(gain: float, adaptation: float, feedback: str, state: str = "inferred") -> ApccSettings:
    """The law on an arm: the secondary objective descends Psi itself, as (16) and (50) are printed.

    Args:
        gain: K [1/s].
        adaptation: Gamma [1/m]; 0: fixed lengths.
        feedback: what Algorithm 2 is given.
        state: configuration at which the Jacobian is taken.
    """
    return ApccSettings.model_validate(
        {
            "gain": gain, "jacobian_state": state, "objective": "norm",
            "adaptation": {"gains": (adaptation,)}, "inference": {"feedback": feedback},
        }
    )  # fmt: skip


def steer(
    arm: Arm, target: np.ndarray, settings: ApccSettings, loops: TendonGains, *,
    payload: float, seconds: float, within: float = 0.0, bag: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One run.

    Args:
        arm: the true one; the controller takes its tendons for coupled, as the thesis's does.
        target: (3,) setpoint [m].
        settings, loops: of the controller, of the tendons.
        payload: at the tip [kg].
        seconds, within: it ends after so long [s], or with the tip so near [m]; 0: it does not.
        bag: to be written; None: none is.

    Returns:
        times (T,) [s]; errors (T,) distance of the tip from the setpoint [m]; costs (T,) Psi of the
        inferred configuration [m]; mapping (T,) E_mapping of (53), from the commanded
        configuration's tip to the true one [m]; lengths (T, n) estimates before the tick [m];
        linear, angular (T, n_s) what Algorithm 2 left of the sensors' errors [m], [rad]; shapes,
        curves (K,) E_shape twice a second, by rest length and by arc length [m]; bounded: share of
        ticks in which a bound held a length back [-]; lost: whether the run was given up.
    """
    told, ticks = common(arm, 1.0 / PERIOD), round(seconds / PERIOD)
    plant = TendonArmPlant(arm, ArmPlantSettings(payload=payload, tip_noise=0.0), gains=loops)
    assumed = arm.model_copy(update={"routing": "coupled"})
    numbers = told | {"setpoints": "paired", "largest_error": LOST}
    controller = ApccBlock(assumed, build_settings(ApccControllerSettings, numbers), settings)
    goal = TipReferenceBlock(
        arm, build_settings(TipReferenceBlock.Settings, told | {"reference": "setpoint"}),
        TipReference(np.zeros(1), target[None], False),
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    seen: dict[str, Any] = {}  # the last value of each topic, and the lengths before the tick
    lost = False

    def observe(_: str, output: Output) -> None:
        nonlocal lost
        seen[output.topic] = output.value
        if output.topic == PLAN and "tip lost: tendons held" in controller.warnings():
            lost = goal.finished = True
        if output.topic == ESTIMATE:
            rows.append(_row(arm, controller, seen, len(rows)))
            goal.finished = rows[-1]["errors"] < within

    blocks: dict[str, BlockBase] = {
        SIMULATOR: simulator(arm, plant, ticks, 1.0 / PERIOD, 0),
        goal.name: goal, controller.name: controller,
    }  # fmt: skip
    try:
        run_blocks(blocks, observe, bag=bag)
    except ArithmeticError:
        lost = True
    arrays = {name: np.array([row[name] for row in rows if name in row]) for name in _SERIES}
    share = controller.describe()["ticks_at_bounds"] / max(1, len(rows))
    return arrays | {"bounded": share, "lost": lost}


def _row(arm: Arm, controller: ApccBlock, seen: dict[str, Any], tick: int) -> dict[str, Any]:
    """What the controller decided beside the truth."""
    decided = controller.command
    assert decided is not None  # it is what ESTIMATE tells
    lengths, inference = seen.get("lengths", arm.model_lengths), decided.inference
    seen["lengths"] = decided.rest_lengths
    expected = arm.model.position(decided.configuration, decided.rest_lengths)
    row = {
        "times": tick * PERIOD,
        "errors": float(np.linalg.norm(decided.error)),
        "costs": elongation_cost(inference.configuration),
        "mapping": float(np.linalg.norm(expected - seen[POSES][-1].position)),
        "lengths": lengths, "linear": inference.linear, "angular": inference.angular,
    }  # fmt: skip
    if tick % _SHAPES_EVERY == 0:
        true = arm.chain, seen["simulation/truth/state"].state, arm.rest_lengths
        pair = *true, arm.model, inference.configuration, lengths
        row |= {"shapes": shape_error(*pair), "curves": shape_error(*pair, "arc")}
    return row


def draw_runs(runs: Mapping[str, Result], path: Path) -> None:
    """Figs. 11 to 16: tip error, E_shape, Psi, sum of lengths of one run of each controller."""
    labels = "tip error / mm", "E_shape / mm", "Psi / mm", "sum of lengths / m"
    with panels(path, labels) as axes:
        for name, run in runs.items():
            times, lost = run["times"], ", lost" if run["lost"] else ""
            axes[0].semilogy(times, 1e3 * run["errors"], label=name + lost)
            axes[1].semilogy(times[::_SHAPES_EVERY], 1e3 * run["shapes"])
            axes[2].semilogy(times, 1e3 * run["costs"])
            axes[3].plot(times, run["lengths"].sum(axis=1))
