"""The files that a run was configured with, as its bag holds them, for who has not got them."""

import re
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_models.files.small_files import content_of
from softcr_models.files.yaml_files import is_path
from softcr_models.robots.robot import file_below
from softcr_runtime.bags.reading import Bag
from softcr_runtime.wire.configuration import TOPIC, Configuration, NamedFile, configurations

_DATA = re.compile(r"\w[\w.+ -]*\.(yaml|yml|json|safetensors|csv|npz)")
"""Names of files that are written here."""


def recorded_configurations(bag: Bag) -> dict[str, Configuration]:
    """Node -> what it was configured with; empty for a bag that does not tell it."""
    if bag.find(TOPIC) is None:
        return {}
    return configurations(_messages(bag))


def _messages(bag: Bag) -> Any:
    for message in bag.messages(TOPIC):
        try:
            yield message.decode()
        except ValueError:  # not a configuration: it tells nothing
            continue


def recorded_code(bag: Bag) -> list[tuple[str, str, str]]:
    """What a run had of code from outside, to be read: where it is from, its digest, its text."""
    found: dict[tuple[str, str], str] = {}
    for node, configured in recorded_configurations(bag).items():
        for file in configured.files:
            if not _is_data(file):
                digest = sha256(file.content).hexdigest()
                told = f"{file.setting} of the {node}: {file.path}"
                found[told, digest] = file.content.decode("utf-8", "replace")
    return [(*told, text) for told, text in found.items()]


class RecordedFiles:
    """Files of a bag, written to a directory of their own that lasts as long as this object.

    Attributes:
        notes: a line for each file that stands in for one of this machine.
    """

    def __init__(self, configured: Mapping[str, Configuration]) -> None:
        """Of what nodes were configured with; nothing is written yet."""
        self.notes: list[str] = []
        self._configured = configured
        self._directory: Path | None = None

    def instead(self, node: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Settings by name that name other files than `values`: those of the run.

        A shipped file that is here and holds the same is used where it is. No other file of this
        machine is looked at: a bag may name any. Code that a run was made with is never run from a
        bag.

        Args:
            node: its name.
            values: its settings by name, as recorded.

        Raises:
            UserError: a file cannot be written.
        """
        told = self._configured.get(node, Configuration())
        changed: dict[str, Any] = {}
        for setting in dict.fromkeys(each.setting for each in told.files):
            files = [each for each in told.files if each.setting == setting]
            is_meant = all(values.get(setting) == each.given for each in files)
            if is_meant and all(map(_is_data, files)) and not all(map(_is_shipped, files)):
                changed[setting] = str(self._written(node, setting, files))
        return changed

    def _written(self, node: str, setting: str, files: list[NamedFile]) -> Path:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="softcr-run-"))
            weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=self._directory))
        for each in files:
            if other := file_below(Path(each.path), each.content):
                raise UserError(
                    f"the {node}'s {setting} in the bag builds on the file {other!r}, which the "
                    "bag does not hold and which is not looked for"
                )
            path = folder / Path(each.path).name
            try:
                path.write_bytes(each.content)
            except (OSError, ValueError) as error:
                raise UserError(f"{each.path!r} of the bag cannot be written: {error}") from None
            self.notes.append(f"the {node}'s {setting} is the run's, from the bag: {path.name}")
        # a network is named without the endings of its files
        return path if len(files) == 1 else path.with_suffix("")


def _is_data(file: NamedFile) -> bool:
    """Whether its name is one of data, and of nothing else."""
    return _DATA.fullmatch(Path(file.path).name) is not None


def _is_shipped(file: NamedFile) -> bool:
    """Whether this machine has the same under the name that the setting has."""
    path = Path(file.path)
    folder = path.parent.name
    if is_path(file.given) or Path(file.given).suffix == path.suffix or not folder.isidentifier():
        return False
    try:
        return content_of(config_directory() / folder / path.name) == file.content
    except (OSError, ValueError, UserError):
        return False
