"""Cost terms from outside the package: a class in a file or a module, named in the settings."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from softcr_control.costs.term import CostTerm
from softcr_models.errors import UserError
from softcr_models.plugins import load_class


class OutsideTerm(BaseModel):
    """A term by its class, `path/file.py:Class` or `package.module:Class`.

    Whatever is given beside them goes to the class by name, as `weight` does.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    class_: str = Field(
        alias="class", min_length=3, description="class of a CostTerm, as path/file.py:Class"
    )
    weight: float = Field(default=1.0, ge=0.0, description="factor of the term")

    def made(self) -> CostTerm:
        """The term.

        Raises:
            UserError: no such file, module or class, it is no cost term, or it cannot be made so.
        """
        kind = load_class(self.class_, "cost term", CostTerm)
        options: dict[str, Any] = {"weight": self.weight, **(self.model_extra or {})}
        try:
            made: CostTerm = kind(**options)
            return made
        except (TypeError, ValueError) as error:
            raise UserError(f"cost term {self.class_}: {error}") from None
