"""What the rod on CUDA is asked, so that a process of its own can: `python cuda_cases.py FILE`.

Numba decides between GPU and simulator when it is imported, so the simulator needs a process.
"""

import sys
import warnings

import numpy as np

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod import stepper
from softcr_models.rod.stepper import Run
from softcr_studies.speed import batch as batches
from softcr_studies.speed.timing import Effort

ROBOT = load_robot("licher2025")
PERIOD = 1 / 70
LONG = 1 / 40  # needs two linearisations
HOPELESS = 3


class Case:
    """Candidates of a rod of n intervals, each with a state, pressures and parameters of its own.

    Five candidates fill two blocks of three threads and leave one thread over.
    """

    def __init__(self, intervals, count=5, steps=2, seed=0):
        random = np.random.default_rng(seed)
        self.rod = CosseratRod(ROBOT, intervals)
        self.moving = RodPrediction(self.rod).state_scale * random.normal(
            0.0, 0.2, (count, self.rod.state_size)
        )
        self.pressures = random.uniform(0.0, 8e4, (count, steps + 1, 3))
        self.parameters = self.rod.nominal_parameters * random.uniform(0.8, 1.2, (count, 3))


def answers(model, case, period):
    """What a prediction model says, by method."""
    return {
        "step": model.step(
            case.moving, case.pressures[:, 0], case.pressures[:, 1], case.parameters, period
        ),
        "rollout": model.rollout(case.moving[0], case.pressures, case.parameters[0], period),
        "tips": model.rollout_tips(case.moving[1], case.pressures, case.parameters[1], period),
        "poses": model.tip_poses(case.moving, case.parameters),
    }


def expected():
    """The processor's answers, by case and method."""
    found = {}
    for name, case, single, period in cases():
        model = RodPrediction(case.rod, single_precision=single)
        found |= {f"{name} {key}": value for key, value in answers(model, case, period).items()}
    case = Case(5)
    run = Run(case.rod.body, case.rod.grid, PERIOD, 2)
    inputs = (case.moving, case.pressures, case.parameters, run)
    found["on device rollout"] = stepper.rollout(*inputs)
    found["on device tips"] = stepper.rollout_tips(*inputs)
    found["on device poses"] = stepper.tip_poses(case.moving, case.parameters, *run[:2])
    case = failing()
    run = Run(case.rod.body, case.rod.grid, PERIOD, 1)
    inputs = (case.moving, case.pressures, case.parameters, run)
    found["failing rollout"] = stepper.rollout(*inputs)
    found["failing tips"] = stepper.rollout_tips(*inputs, single_precision=True)
    return found


def cases():
    """(name, case, single_precision, period)."""
    return (
        ("n = 2", Case(2), False, PERIOD),
        ("n = 5", Case(5, count=4), False, PERIOD),
        ("long step", Case(2), False, LONG),
        ("float32", Case(2), True, PERIOD),
    )


def failing():
    """Rods so fast that all need retries but the first; one is beyond help."""
    case = Case(2, seed=1)
    case.moving[1:] *= 50.0
    case.moving[HOPELESS] = 1e200
    return case


def found_on_cuda():
    """The same from the GPU, or from the simulator."""
    from numba import cuda

    from softcr_models.cuda import prediction
    from softcr_models.cuda.prediction import CudaRodPrediction

    prediction.THREADS_PER_BLOCK = 3
    found = {}
    for name, case, single, period in cases():
        model = CudaRodPrediction(case.rod, single_precision=single)
        found |= {f"{name} {key}": value for key, value in answers(model, case, period).items()}
    case = Case(5)
    model = CudaRodPrediction(case.rod, single_precision=False)
    inputs = [cuda.to_device(a) for a in (case.moving, case.pressures, case.parameters)]
    out = cuda.device_array((5, 2, 72), float)
    assert model.rollout_on_device(*inputs, PERIOD, out) is out
    found["on device rollout"] = out.copy_to_host()
    found["on device tips"] = model.rollout_tips_on_device(*inputs, PERIOD).copy_to_host()
    found["on device poses"] = model.tip_poses_on_device(inputs[0], inputs[2]).copy_to_host()
    found |= refusals(model, inputs) | bench()
    case = failing()
    arrays = (case.moving, case.pressures, case.parameters)
    inputs = [cuda.to_device(array) for array in arrays]
    model = CudaRodPrediction(case.rod, 1, single_precision=False)
    found["failing rollout"] = model.rollout_on_device(*inputs, PERIOD).copy_to_host()
    model = CudaRodPrediction(case.rod, 1, single_precision=False, retry_factors=())
    found["without retries"] = model.rollout_on_device(*inputs, PERIOD).copy_to_host()
    model = CudaRodPrediction(case.rod, 1, single_precision=True)
    inputs = [cuda.to_device(array.astype(np.float32)) for array in arrays]
    found["failing tips"] = model.rollout_tips_on_device(*inputs, PERIOD).copy_to_host()
    return found


def bench():
    """The cells of speed/batch on the GPU, of two candidates."""
    batches.CANDIDATES, batches.HORIZON, batches.CHECKED = 2, 1, 2
    effort = Effort(repeats=3, seconds=0.01, periods=4)
    told = [batches.cuda(on_device, effort) for on_device in (False, True)]
    return {
        "bench medians": [each["median"] for each in told],
        "bench tip errors": [1e-3 * each["tip error"] for each in told],
    }


def refusals(model, inputs):
    """What is said to arrays a kernel must not be given."""
    from numba import cuda

    states, pressures, parameters = inputs
    wrong = {
        "shape": (states, pressures, cuda.device_array((3, 3), float)),
        "type": (states, cuda.device_array(pressures.shape, np.float32), parameters),
    }
    said = {}
    for name, arrays in wrong.items():
        try:
            model.rollout_on_device(*arrays, PERIOD)
        except UserError as error:
            said[f"refused {name}"] = str(error)
    return said | refusals_of_host_arrays(model)


def refusals_of_host_arrays(model):
    """What the methods of the protocol say to wrong calls, in the words of the processor's."""
    states, levels = np.zeros((2, model.state_size)), np.zeros((2, 2, model.input_size))
    nominal = np.tile(model.nominal_parameters, (2, 1))
    ends = (levels[:, 0], levels[:, 1])
    negative = nominal.copy()
    negative[1, 0] = -1.0
    calls = {
        "state": lambda: model.rollout(np.zeros(12), levels, nominal[0], PERIOD),
        "chambers": lambda: model.rollout(states[0], np.zeros((2, 2, 7)), nominal[0], PERIOD),
        "dt": lambda: model.step(states, *ends, nominal, -0.1),
        "sign": lambda: model.step(states, *ends, negative, PERIOD),
    }
    said = {}
    for name, call in calls.items():
        try:
            call()
        except UserError as error:
            said[f"refused {name}"] = str(error)
    return said


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)  # of rods that leave the numbers
    np.savez(sys.argv[1], **found_on_cuda())
