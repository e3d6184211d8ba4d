"""Robot files of both kinds: rods that pressure drives, and arms that tendons drive."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Union

import yaml

from softcr_models.config import config_directory
from softcr_models.errors import UserError
from softcr_models.robot import Robot, available_robots, load_robot

if TYPE_CHECKING:
    from softcr_models.constant_curvature.arm import Arm

Kind = Literal["rod", "arm"]

WORDS: dict[Kind, str] = {"rod": "a rod driven by pressure", "arm": "an arm driven by tendons"}

_ONLY_ARMS = {"bodies", "racks", "tendon_radius"}
"""Fields that no rod has: a file with one of them is an arm's."""


def load_robot_file(
    name_or_path: str | Path, kinds: tuple[Kind, ...] = ("rod", "arm")
) -> Union[Robot, "Arm"]:
    """The robot of `config/robots` or `config/arms` by its name, or of the YAML file at a path.

    Args:
        name_or_path: which.
        kinds: what is allowed.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed; or that
            it is the other kind of robot.
    """
    kind = kind_of(name_or_path)
    if kind not in kinds:
        (wanted,) = kinds
        raise UserError(
            f"robot {str(name_or_path)!r}: is {WORDS[kind]}, must be {WORDS[wanted]}; known are "
            f"{', '.join(_known(wanted))}"
        )
    if kind == "rod":
        return load_robot(name_or_path)
    # with kernels of its own, which nobody else needs to load
    from softcr_models.constant_curvature.arm import load_arm

    return load_arm(name_or_path)


def kind_of(name_or_path: str | Path) -> Kind:
    """What kind of robot a name or a file means; what cannot be read counts as a rod.

    Raises:
        UserError: no robot has this name.
    """
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") or path.parent != Path("."):
        return "arm" if _tells_of_an_arm(path) else "rod"
    name = str(name_or_path)
    if name in _known("arm"):
        return "arm"
    if name not in _known("rod"):
        known = ", ".join([*_known("rod"), *_known("arm")])
        raise UserError(f"robot {name!r}: unknown; known are {known}, or give a .yaml path")
    return "rod"


def _known(kind: Kind) -> list[str]:
    if kind == "rod":
        return available_robots()
    return sorted(path.stem for path in (config_directory() / "arms").glob("*.yaml"))


def _tells_of_an_arm(path: Path) -> bool:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return False  # load_robot says what is wrong
    return isinstance(content, dict) and bool(_ONLY_ARMS & content.keys())
