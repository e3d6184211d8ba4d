"""The exact rod on CUDA as a prediction model, with arrays on the host or on the device."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import cuda
from numba.cuda.cudadrv.devicearray import is_cuda_ndarray

from softcr_models.cuda import kernels
from softcr_models.devices import resolve_device
from softcr_models.model import TIP
from softcr_models.prediction import RodPrediction
from softcr_models.rod import boundary, stepper
from softcr_models.rod.cosserat_rod import CosseratRod, linearisations

# numba finds a thousand candidates few for a GPU, and would say so
warnings.filterwarnings("ignore", "Grid size .* low occupancy")

# One warp: a thousand candidates are few for a GPU, and small blocks spread them over its
# multiprocessors.
THREADS_PER_BLOCK = 32
PARAMETERS = len(stepper.PARAMETERS)
STATE, TIPS = 0, 1  # what a kernel writes after each step


class CudaRodPrediction:
    """The rod as a prediction model on the first GPU, a thread per candidate.

    What `RodPrediction` is on the processor: same equations, method, parameters and retries.

    The methods of the protocol take and return numpy arrays. Those named `..._on_device` do the
    same with arrays that stay on the device: anything with a `__cuda_array_interface__` (CUDA
    tensors of torch, CuPy's and numba's arrays), contiguous, of type `dtype`. They only enqueue
    work on `stream` (a CUDA stream's handle, as torch.cuda.current_stream().cuda_stream; 0 is the
    default stream), and given `out` they allocate nothing.

    Candidates whose result is not finite are done again in finer steps, with the factors of the
    processor's retries, in float64 and with fresh linearisations; what is still not finite is NaN.
    They are not counted, because that would wait for the device.
    A candidate that is well leaves a retry at once, but a batch waits for the one that needs them:
    2 + 4 + 8 + 16 times its rollout. Where a tick must not, give fewer `retry_factors`, or none.

    A kernel is compiled at its first call (seconds), see `warm_up`, and serves this rod only.

    Attributes:
        rod, substeps, single_precision: as of `RodPrediction`.
        retry_factors: by which the number of sub-steps is multiplied, one retry each.
        dtype: float type of rollouts and of all arrays on the device: np.float32 if
            `single_precision`, else np.float64.
    """

    parameter_names: tuple[str, ...] = stepper.PARAMETERS

    def __init__(
        self,
        rod: CosseratRod,
        substeps: int = 2,
        single_precision: bool = True,
        retry_factors: Sequence[int] = stepper.RETRY_FACTORS,
    ) -> None:
        """A model of `rod` on the GPU.

        Raises:
            UserError: if there is no GPU that can be used; the line says what is missing.
        """
        resolve_device("cuda", "numba")
        on_processor = RodPrediction(rod, substeps, single_precision)
        self.rod = rod
        self.substeps = substeps
        self.single_precision = single_precision
        self.retry_factors = tuple(retry_factors)
        self.dtype: type[np.floating] = np.float32 if single_precision else np.float64
        self.state, self.inputs = on_processor.state, on_processor.inputs
        self.parameters, self.outputs = on_processor.parameters, on_processor.outputs
        self.state_size = on_processor.state_size
        self.input_size = on_processor.input_size
        self.nominal_parameters = on_processor.nominal_parameters
        self.state_scale = on_processor.state_scale
        self._exact = on_processor
        self._attempt = cuda.to_device(np.array([substeps]))
        self._retries = cuda.to_device(substeps * np.array(self.retry_factors, dtype=int))
        self._rollout, self._tip_poses = (
            {dtype: cuda.jit(text(rod.body, rod.grid, dtype)) for dtype in (np.float32, np.float64)}
            for text in (kernels.rollout_text, kernels.tip_text)
        )

    def step(
        self,
        states: np.ndarray,
        pressures_begin: np.ndarray,
        pressures_end: np.ndarray,
        parameters: np.ndarray,
        dt: float,
    ) -> np.ndarray:
        """See PredictionModel; float64."""
        where = "CudaRodPrediction.step"
        levels = boundary.ends_of_step(
            where, states, pressures_begin, pressures_end, self.input_size
        )
        return self._from_host(where, states, levels, parameters, dt, np.float64, STATE)[:, -1]

    def rollout(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """See PredictionModel; float32 if `single_precision`."""
        where = "CudaRodPrediction.rollout"
        start, row = boundary.one_start(where, state, parameters, self.state_size)
        return self._from_host(where, start, pressures, row, dt, self.dtype, STATE)

    def rollout_tips(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """See PredictionModel; float32 if `single_precision`."""
        where = "CudaRodPrediction.rollout_tips"
        start, row = boundary.one_start(where, state, parameters, self.state_size)
        return self._from_host(where, start, pressures, row, dt, self.dtype, TIPS)

    def tip_poses(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See PredictionModel; of the states' float type."""
        where = "CudaRodPrediction.tip_poses"
        single = getattr(states, "dtype", None) == np.float32
        dtype = np.float32 if single else np.float64
        rows = boundary.states_and_parameters(
            where, states, parameters, self.state_size, np.dtype(dtype)
        )
        states, parameters = (_to_device(values, dtype) for values in rows)
        poses = self._pose(where, states, parameters, dtype)
        return poses.copy_to_host()

    def observe(
        self,
        names: Sequence[str],
        states: np.ndarray,
        inputs: np.ndarray | None,
        parameters: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """See Model; what is not the tip comes from the processor."""
        others = [name for name in names if name != TIP]
        found = self._exact.observe(others, states, inputs, parameters)
        return {n: found[n] if n in found else self.tip_poses(states, parameters) for n in names}

    def equilibrium(self, pressures: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See PredictionModel; on the processor."""
        return self.rod.equilibrium(pressures, parameters)

    def rollout_on_device(
        self,
        states: Any,
        pressures: Any,
        parameters: Any,
        dt: float,
        out: Any = None,
        stream: int = 0,
    ) -> Any:
        """States after each step, all arrays on the device.

        Args:
            states: (B, state_size), or (1, state_size) for all.
            pressures: (B, T + 1, m) [Pa] at begin and end of the steps, linear in between.
            parameters: (B, 3), or (1, 3) for all.
            dt: length of a step [s].
            out: (B, T, state_size) to write to; None makes a numba array.
            stream: handle of the CUDA stream the work is put on.

        Returns:
            `out`.

        Raises:
            UserError: if an array has another shape, type or layout, or dt is not above 0. Signs of
                parameters are not looked at, because that would wait for the device.
        """
        where, inputs = "CudaRodPrediction.rollout_on_device", (states, pressures, parameters)
        return self._advance(where, inputs, dt, self.dtype, STATE, out, stream)

    def rollout_tips_on_device(
        self,
        states: Any,
        pressures: Any,
        parameters: Any,
        dt: float,
        out: Any = None,
        stream: int = 0,
    ) -> Any:
        """As `rollout_on_device`, but (B, T, 3, 4) tip poses as of `rollout_tips`."""
        where, inputs = "CudaRodPrediction.rollout_tips_on_device", (states, pressures, parameters)
        return self._advance(where, inputs, dt, self.dtype, TIPS, out, stream)

    def tip_poses_on_device(
        self, states: Any, parameters: Any, out: Any = None, stream: int = 0
    ) -> Any:
        """(B, 3, 4) tip poses of states (B, state_size), parameters (B, 3) or (1, 3) for all.

        Raises:
            UserError: if an array has another shape, type or layout.
        """
        where = "CudaRodPrediction.tip_poses_on_device"
        return self._pose(where, states, parameters, self.dtype, out, stream)

    def warm_up(self) -> None:
        """Compiles every kernel a control loop may call (a minute), so that no tick does."""
        states = np.zeros((2, self.state_size))
        parameters = np.repeat(self.nominal_parameters[None], 2, axis=0)
        levels = np.zeros((2, 2, self.input_size))
        self.step(states, levels[:, 0], levels[:, 1], parameters, 0.01)
        self.rollout(states[0], levels, parameters[0], 0.01)
        self.tip_poses(states, parameters)
        self.tip_poses(states.astype(self.dtype), parameters)
        self.rod.equilibrium(levels[0, 0])
        self.rod.tip_pose(states[0])
        self.rod.base_wrench(states[0], levels[0, 0])

    def _from_host(self, where, states, pressures, parameters, dt, dtype, tips):
        rows = boundary.candidates(
            where, states, pressures, parameters, self.state_size, self.input_size
        )
        inputs = [_to_device(values, dtype) for values in rows]
        return self._advance(where, inputs, dt, dtype, tips).copy_to_host()

    def _advance(self, where, inputs, dt, dtype, tips, out=None, stream=0):
        """Enqueues rollout and retries; `tips` is STATE or TIPS."""
        dt = boundary.step_length(where, dt)
        named = zip(("states", "pressures", "parameters"), inputs, strict=True)
        arrays = [_on_device(where, name, values, dtype) for name, values in named]
        shapes = [tuple(array.shape) for array in arrays]
        boundary.require_batch(where, *shapes, self.state_size, self.input_size)
        batch, levels, _ = shapes[1]
        steps, row = levels - 1, (3, 4) if tips else (self.state_size,)
        if out is None:
            out = cuda.device_array((batch, steps, *row), dtype)
        rows = _on_device(where, "out", out, dtype)
        boundary.require_shape(where, "out", tuple(rows.shape), (batch, steps, *row))
        rows = rows.reshape(batch, steps, math.prod(row))
        pieces, launch = linearisations(dt), _launch(batch, stream)
        if batch:
            compute, fresh, again = self._rollout[dtype][launch], 0, 0
            compute(*arrays, pieces, self._attempt, fresh, tips, again, dt, rows)
            if self.retry_factors:
                compute, fresh, again = self._rollout[np.float64][launch], 1, 1
                compute(*arrays, pieces, self._retries, fresh, tips, again, dt, rows)
        return out

    def _pose(self, where, states, parameters, dtype, out=None, stream=0):
        states = _on_device(where, "states", states, dtype)
        parameters = _on_device(where, "parameters", parameters, dtype)
        boundary.require_shape(where, "states", tuple(states.shape), ("B", self.state_size))
        batch = states.shape[0]
        boundary.require_rows(where, "parameters", tuple(parameters.shape), batch, PARAMETERS)
        if out is None:
            out = cuda.device_array((batch, 3, 4), dtype)
        rows = _on_device(where, "out", out, dtype)
        boundary.require_shape(where, "out", tuple(rows.shape), (batch, 3, 4))
        if batch:
            launch = _launch(batch, stream)
            self._tip_poses[dtype][launch](states, parameters, rows.reshape(batch, 12))
        return out


def _to_device(values, dtype):
    return cuda.to_device(np.ascontiguousarray(values, dtype))


def _launch(batch, stream):
    """Grid, block and stream of a kernel with a thread for each of `batch`."""
    blocks = (batch + THREADS_PER_BLOCK - 1) // THREADS_PER_BLOCK
    return blocks, THREADS_PER_BLOCK, cuda.external_stream(stream) if stream else 0


def _on_device(where, name, values, dtype):
    """The array as numba sees it: a kernel believes what it is told."""
    array = values if is_cuda_ndarray(values) else cuda.as_cuda_array(values, sync=False)
    if array.dtype != dtype or not array.flags["C_CONTIGUOUS"]:
        layout = "contiguous" if array.flags["C_CONTIGUOUS"] else "not contiguous"
        raise boundary.ArgumentError(
            f"{where}: {name} on the device of type {array.dtype}, {layout}: "
            f"allowed is {np.dtype(dtype)}, contiguous"
        )
    return array
