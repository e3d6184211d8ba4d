"""The NEMPC by what its population lives in: arrays of numpy or tensors of torch."""

import importlib.util
from typing import ClassVar, Literal

from pydantic import Field

from softcr_control.observation import ControlContext
from softcr_control.predictive.nempc import Nempc, NempcSettings
from softcr_models.errors import UserError


class NempcBackendSettings(NempcSettings):
    """Numbers of the algorithm, and what carries it."""

    backend: Literal["auto", "numpy", "torch"] = Field(
        default="auto",
        description="library that computes the population; auto: torch if the model computes on a "
        "GPU",
    )


class NempcBackend(Nempc):
    """Chooses who computes; see `made`."""

    Settings: ClassVar[type[NempcSettings]] = NempcBackendSettings

    @classmethod
    def made(cls, context: ControlContext, settings: NempcBackendSettings) -> Nempc:
        """`Nempc`, or its twin on tensors where `backend` asks for it; see `NempcTorch`.

        Raises:
            UserError: "torch" with a model or a cost term that does not compute with tensors.
        """
        chosen, on_gpu = settings.backend, getattr(context.model, "on_gpu", False)
        if chosen == "torch" and importlib.util.find_spec("torch") is None:
            raise UserError("backend: 'torch' needs PyTorch: pip install 'softcr[surrogate]'")
        if chosen == "numpy" or (chosen == "auto" and not on_gpu):
            return Nempc(context, settings)
        # torch is imported only where it is wanted
        from softcr_control.predictive.nempc_torch import NempcTorch

        try:
            return NempcTorch(context, settings)
        except UserError:
            if chosen == "torch":
                raise
            return Nempc(context, settings)
