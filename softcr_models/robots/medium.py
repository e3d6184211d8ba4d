"""The fluid around a rod: what its file says of buoyancy, drag and flow. SI units."""

from typing import Annotated

from pydantic import Field, model_validator

from softcr_models.files.number_types import NonNegative, Positive, Triple
from softcr_models.robots.parts import Data

_Six = Annotated[tuple[NonNegative, ...], Field(min_length=6, max_length=6)]


class Medium(Data):
    """A fluid of one density, still or in a uniform flow.

    Its buoyancy is the weight of the fluid in the place of the segments, chambers included; the
    central hole is open and full of it. Connectors, payload and tip mass displace none. Drag is
    that of a long cylinder (Morison's drag term, with the flow split across and along the rod):
    a length has across it 0.5 rho d C_n |v_n| v_n and along it 0.5 rho pi d C_t |v_t| v_t, with v
    the fluid's velocity against the rod and d the outer diameter. The fluid that moves with the rod
    (added mass) is not modelled.
    """

    density: Positive = Field(description="density of the fluid [kg/m^3]")
    normal_drag: NonNegative = Field(
        default=0.0, description="coefficient C_n of drag across the rod, about 1.1 in water [-]"
    )
    tangential_drag: NonNegative = Field(
        default=0.0, description="coefficient C_t of drag along the rod, about 0.01 in water [-]"
    )
    linear_drag: _Six = Field(
        default=(0.0,) * 6,
        description="drag proportional to the velocity of the section: force per length over "
        "velocity along x, y, z [N s/m^2], moment per length over rate about x, y, z [N s]",
    )
    flow: Triple = Field(
        default=(0.0, 0.0, 0.0), description="velocity of the fluid, base frame [m/s]"
    )

    @model_validator(mode="after")
    def _flow_acts(self) -> "Medium":
        if not any(self.flow):
            return self
        if any(self.linear_drag):
            raise ValueError(
                f"flow {list(self.flow)} with linear_drag {list(self.linear_drag)}: linear_drag is "
                "that of a still fluid; in a flow give normal_drag and tangential_drag"
            )
        if not self.has_quadratic_drag:
            raise ValueError(
                f"flow {list(self.flow)}: acts by drag alone: normal_drag or tangential_drag must "
                "be above 0"
            )
        return self

    @property
    def has_quadratic_drag(self) -> bool:
        """Whether any drag grows with the square of the velocity."""
        return self.normal_drag > 0.0 or self.tangential_drag > 0.0
