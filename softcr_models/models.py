"""Which prediction model a node uses: the exact rod or its surrogate, on the processor or a GPU."""

import importlib.util
from dataclasses import dataclass
from typing import Literal

from softcr_models.errors import UserError
from softcr_models.prediction import PredictionModel, RodPrediction
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod

ModelName = Literal["rod", "ddpinn"]
DeviceName = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True)
class ModelChoice:
    """What to predict with.

    Attributes:
        model: "rod", the exact one, or "ddpinn", the network trained for the robot.
        device: "cpu", "cuda", or "auto": a GPU if there is one.
        network: path of the network's files without ending; empty for the robot's shipped one.
        intervals: of the rod; a network has the number it was trained with.
        substeps: of the exact rod's integration per period.
        single_precision: whether the exact rod's rollouts are float32.
    """

    model: ModelName = "rod"
    device: DeviceName = "cpu"
    network: str = ""
    intervals: int = 5
    substeps: int = 2
    single_precision: bool = True


def prediction_model(robot: Robot, choice: ModelChoice) -> PredictionModel:
    """The model chosen, for a robot.

    Raises:
        UserError: no such network, a network for another robot or number of intervals, or a device
            that is not there.
    """
    if choice.model == "ddpinn":
        return _surrogate(robot, choice)
    from softcr_models.devices import resolve_device

    rod = CosseratRod(robot, choice.intervals)
    if resolve_device(choice.device, "numba") == "cuda":
        from softcr_models.cuda.prediction import CudaRodPrediction

        return CudaRodPrediction(rod, choice.substeps, choice.single_precision)
    return RodPrediction(rod, choice.substeps, choice.single_precision)


def _surrogate(robot: Robot, choice: ModelChoice) -> PredictionModel:
    if importlib.util.find_spec("torch") is None:
        raise UserError("model: 'ddpinn' needs PyTorch: pip install 'softcr[surrogate]'")
    from softcr_models.surrogate.prediction import SurrogatePrediction

    chosen = SurrogatePrediction.load(robot, choice.network, choice.device)
    if chosen.rod.intervals != choice.intervals:
        raise UserError(
            f"intervals: {choice.intervals}, but the network of {robot.name} was trained for "
            f"{chosen.rod.intervals}"
        )
    return chosen
