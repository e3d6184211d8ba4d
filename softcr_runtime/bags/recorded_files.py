"""The files that a run was configured with, as its bag holds them, for who has not got them."""

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softcr_models.config import config_directory
from softcr_models.errors import UserError
from softcr_models.yaml_files import is_path
from softcr_runtime.bags.reading import Bag
from softcr_runtime.configuration import TOPIC, Configuration, NamedFile, configurations

_CODE = (".py",)


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

        A file that this machine has, and that holds the same, is used where it is. Code that a run
        was made with is never run from a bag.

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
            code = any(each.path.endswith(_CODE) for each in files)
            if is_meant and not code and not all(map(_is_here, files)):
                changed[setting] = str(self._written(node, setting, files))
        return changed

    def _written(self, node: str, setting: str, files: list[NamedFile]) -> Path:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="softcr-run-"))
            weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=self._directory))
        for each in files:
            path, here = folder / Path(each.path).name, _on_this_machine(each)
            try:
                path.write_bytes(each.content)
            except (OSError, ValueError) as error:
                raise UserError(f"{each.path!r} of the bag cannot be written: {error}") from None
            why = "differs" if here.is_file() else "does not exist"
            self.notes.append(f"the {node}'s {setting} is the run's, from the bag: {here} {why}")
        # a network is named without the endings of its files
        return path if len(files) == 1 else path.with_suffix("")


def _on_this_machine(file: NamedFile) -> Path:
    """Where the value of its setting would be looked for here."""
    given, path = Path(file.given), Path(file.path)
    if is_path(given) or given.suffix == path.suffix:
        return given.with_name(path.name)
    return config_directory() / path.parent.name / path.name


def _is_here(file: NamedFile) -> bool:
    try:
        return _on_this_machine(file).read_bytes() == file.content
    except (OSError, ValueError):
        return False
