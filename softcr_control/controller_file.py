"""Controllers as data: a validated file of algorithm numbers and cost weights."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from softcr_control.costs.settings import CostSettings
from softcr_control.nempc import NempcSettings
from softcr_control.rod_mpc import RodMpcSettings
from softcr_models.config import config_directory
from softcr_models.errors import UserError

_File = TypeVar("_File", bound=BaseModel)


class NempcFile(BaseModel):
    """A file of config/controllers for the NEMPC; what it leaves out has its default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = ""
    nempc: NempcSettings = NempcSettings()
    costs: CostSettings = CostSettings()


class RodMpcFile(BaseModel):
    """A file of config/controllers for the gradient MPC; what it leaves out has its default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = ""
    rod_mpc: RodMpcSettings = RodMpcSettings()
    costs: CostSettings = CostSettings(input_rate=0.05)


def load_nempc(name_or_path: str | Path = "nempc") -> NempcFile:
    """The controller of `config/controllers/NAME.yaml`, or of the YAML file at a path.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    return _loaded(NempcFile, name_or_path)


def load_rod_mpc(name_or_path: str | Path = "rod_mpc") -> RodMpcFile:
    """As `load_nempc`, for the gradient MPC."""
    return _loaded(RodMpcFile, name_or_path)


def _loaded(kind: type[_File], name_or_path: str | Path) -> _File:
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        path = config_directory() / "controllers" / f"{name_or_path}.yaml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        return kind.model_validate(content)
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml"))) or "none"
        raise UserError(f"controller file {path}: no such file; beside it are: {known}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{path}: cannot be read as a controller file: {problem}") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "file"
        reason = first["msg"].removeprefix("Value error, ")
        raise UserError(f"{path}: {field}: {first['input']!r} is not allowed: {reason}") from None
