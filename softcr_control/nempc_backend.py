"""The NEMPC by what its population lives in: arrays of numpy or tensors of torch."""

from typing import ClassVar, Literal

from pydantic import Field

from softcr_control.nempc import Nempc, NempcSettings
from softcr_control.observation import ControlContext
from softcr_models.errors import UserError


class NempcBackendSettings(NempcSettings):
    """Numbers of the algorithm, and what carries it."""

    backend: Literal["auto", "numpy", "torch"] = Field(
        default="auto",
        description="what the population lives in; auto: torch where a network computes on a GPU",
    )


class NempcBackend(Nempc):
    """Chooses who computes; see `made`."""

    Settings: ClassVar[type[NempcSettings]] = NempcBackendSettings

    @classmethod
    def made(cls, context: ControlContext, settings: NempcBackendSettings) -> Nempc:
        """`Nempc`, or its twin on tensors where `backend` asks for it; see `NempcTorch`.

        Raises:
            UserError: "torch" with a model that does not compute with tensors.
        """
        approximate = getattr(context.model, "approximate", False)
        if settings.backend == "torch" and not approximate:
            raise UserError("backend: 'torch' needs the model 'ddpinn', a trained network")
        if settings.backend == "numpy" or not approximate:
            return Nempc(context, settings)
        # torch is imported only where a network is the model
        from softcr_control.nempc_torch import NempcTorch, what_is_missing

        on_gpu = context.model.device.type == "cuda"  # type: ignore[attr-defined]
        useless = not on_gpu or bool(what_is_missing(context.model, context.period))
        if settings.backend == "auto" and useless:
            return Nempc(context, settings)
        return NempcTorch(context, settings)
