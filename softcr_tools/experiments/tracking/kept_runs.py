"""Runs of a long experiment that are done: one that was stopped goes on from there."""

import hashlib
import json
from pathlib import Path

from softcr_control.controller_file import named_settings
from softcr_estimation import EstimatorSettings
from softcr_models import Robot
from softcr_models.errors import UserError
from softcr_tools.experiments.tracking.cases import MODEL_BASED, Case

Run = tuple[Case, str, int]
"""Case, controller and seed."""


class KeptRuns:
    """A number per run, in a file of lines.

    A run is known by its case, controller and seed, and by the settings of robot, filter and
    controller: what was run with others is run again. The program itself is not looked at.
    """

    def __init__(self, path: Path, robot: Robot) -> None:
        """Reads what is there.

        Raises:
            UserError: the file is not what `add` writes.
        """
        self._path = path
        self._settings = robot.model_dump_json(), EstimatorSettings().model_dump_json()
        self._files = {name: named_settings(name).model_dump_json() for name in MODEL_BASED}
        self._numbers: dict[str, float] = {}
        if not path.exists():
            return
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                key, value = json.loads(line)
                self._numbers[key] = float(value)
            except (ValueError, TypeError):
                raise UserError(
                    f"{path}: line {number} is {line!r:.60}, must be [key, number]; "
                    "delete the file to begin anew"
                ) from None

    def __contains__(self, run: Run) -> bool:
        return self._key(run) in self._numbers

    def __getitem__(self, run: Run) -> float:
        return self._numbers[self._key(run)]

    def add(self, run: Run, number: float) -> None:
        """Keeps a run's number.

        Raises:
            OSError: it cannot be written.
        """
        key = self._key(run)
        self._numbers[key] = number
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, number]) + "\n")

    def finish(self, path: Path) -> None:
        """Everything has been run: the lines go to `path`, and the next time begins anew.

        Raises:
            OSError: they cannot be moved.
        """
        self._path.replace(path)

    def _key(self, run: Run) -> str:
        case, controller, seed = run
        text = json.dumps(
            [*self._settings, repr(case), controller, self._files.get(controller), seed]
        )
        return hashlib.sha256(text.encode()).hexdigest()[:24]
