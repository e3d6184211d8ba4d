"""A user's program with every name of `softcr`, as test_package.py runs it and checks its types."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import softcr
from softcr import (
    Bag,
    CosseratRod,
    ModelEstimator,
    Robot,
    RodPrediction,
    UserError,
    VirtualExecutor,
    available_robots,
    load_robot,
    make_model,
)  # fmt: skip

robot: Robot = load_robot("licher2025").replace(bending_compliance=45.0)
rod = CosseratRod(robot, intervals=5)
pressures: NDArray[np.float64] = np.array([40e3, 10e3, 0.0])
state = rod.step(rod.equilibrium(pressures), pressures, 1 / 70)
A, B = rod.linearize(state, pressures)
force: float = float(rod.base_wrench(state, pressures)[2])

prediction = RodPrediction(rod)
nominal = np.array([each.nominal for each in prediction.parameters])
states = prediction.step(
    np.tile(state, (8, 1)), np.tile(pressures, (8, 1)), np.zeros((8, 3)), nominal[None], 1 / 70
)
tips: NDArray[np.float64] = prediction.tip_poses(states, nominal[None])[:, :, 3]

estimator = ModelEstimator(prediction)
estimator.start(pressures, 0.0)
estimate = estimator.update(pressures, {"tip": rod.tip_pose(state)[:3, 3]}, 1 / 70)
compliance: float = estimate.parameters["bending_compliance"]
assert robot.name in available_robots()
print(softcr.__version__, A.shape, B.shape, tips.shape, make_model("rod", robot).state.size)


def topics(bag: Path) -> list[str]:
    try:
        return sorted({message.topic for message in Bag(bag).messages()})
    except UserError as error:
        return [str(error)]


def complaints(executor: VirtualExecutor) -> list[str]:
    executor.run()
    return list(executor.complaints)


print(topics(Path("no such bag")))
