"""Cost terms from outside the package: a class in a file or a module, named in the settings."""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from softcr_control.costs.term import CostTerm
from softcr_models.errors import UserError


class OutsideTerm(BaseModel):
    """A term by its class, `path/file.py:Class` or `package.module:Class`.

    Whatever is given beside them goes to the class by name, as `weight` does.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    class_: str = Field(alias="class", min_length=3, description="path/file.py:Class of a CostTerm")
    weight: float = Field(default=1.0, ge=0.0, description="the term's factor")

    def made(self) -> CostTerm:
        """The term.

        Raises:
            UserError: no such file, module or class, it is no cost term, or it cannot be made so.
        """
        where, _, name = self.class_.rpartition(":")
        kind = getattr(_module(where, self.class_), name, None)
        if not (isinstance(kind, type) and issubclass(kind, CostTerm)):
            raise UserError(f"cost term {self.class_}: {name!r} is no class made from CostTerm")
        options: dict[str, Any] = {"weight": self.weight, **(self.model_extra or {})}
        try:
            return kind(**options)
        except (TypeError, ValueError) as error:
            raise UserError(f"cost term {self.class_}: {error}") from None


def _module(where: str, named: str) -> ModuleType:
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        path = Path(where)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None  # of a name that ends in .py
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except (ImportError, OSError, SyntaxError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"cost term {named}: cannot be imported: {problem}") from None
