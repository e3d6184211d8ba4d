"""Where the configuration files lie: in a source checkout, a pip install or a colcon install."""

from functools import cache
from pathlib import Path

from softcr_models.errors import UserError


@cache
def config_directory() -> Path:
    """The directory `config/` with the robots and systems this package came with.

    A checkout (also installed editable) has it beside this package. Every other install, by pip or
    by colcon, puts it into `share/softcr/config` of a prefix above this package.

    Raises:
        UserError: neither place holds `config/robots`: the installation is not complete.
    """
    packages = Path(__file__).resolve().parents[2]
    places = [packages / "config"]
    places += [prefix / "share" / "softcr" / "config" for prefix in (packages, *packages.parents)]
    for place in places:
        if (place / "robots").is_dir():
            return place
    raise UserError(
        f"config directory: not found beside {packages} nor in share/softcr/config above it; "
        "install softcr again"
    )
