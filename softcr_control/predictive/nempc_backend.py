"""The NEMPC by what its population lives in: arrays of numpy, or tensors on a GPU."""

from softcr_control.observation import ControlContext
from softcr_control.predictive.nempc import Nempc, NempcSettings
from softcr_models.errors import UserError
from softcr_runtime.console.terminal import warn


class NempcBackend(Nempc):
    """Chooses who computes; see `made`."""

    @classmethod
    def made(cls, context: ControlContext, settings: NempcSettings) -> Nempc:
        """`NempcTorch` where the model computes on a GPU and all cost terms can, else `Nempc`."""
        if getattr(context.model, "on_gpu", False):
            # torch is imported only where it is wanted
            from softcr_control.predictive.nempc_torch import NempcTorch

            try:
                return NempcTorch(context, settings)
            except UserError as error:  # arrays travel to the GPU and back
                warn(f"{error}: the population is computed on the processor")
        return Nempc(context, settings)
