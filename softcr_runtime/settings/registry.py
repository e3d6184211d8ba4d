"""Everything that has a name: controllers, estimators, plants, references, models.

A name of this table, `package.module:Class` and `path/file.py:Class` all name one; so does
`name:VALUE` where one of its settings may be given with the name. The command line, nodes, replay
and reports derive their choices from here: adding one is a file and a line. A package that is
installed beside softcr adds its own by an entry point of the group `softcr.names`, whose value is a
mapping of the form `Names`; the papers' folders do so, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal

from softcr_models.errors import UserError, did_you_mean
from softcr_models.plugins import in_a_line, load_class
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.system import Parameters, Part
from softcr_runtime.settings.plugin_settings import with_default

Kind = Literal["controller", "estimator", "plant", "reference"]


@dataclass(frozen=True)
class Entry:
    """One thing with a name.

    Attributes:
        place: `package.module:Class`.
        summary: what it is, for lists of choices.
        node: name of its node; empty for the kind's own.
        takes: the setting that may be given after the name and a colon; empty for none.
        predicts: whether it is a controller that predicts with a model.
    """

    place: str
    summary: str
    node: str = ""
    takes: str = ""
    predicts: bool = False


Names = Mapping[str, Mapping[str, Entry]]
"""Kind -> name -> entry: a `Kind`, or one of `Functions`, whose places are functions."""

Functions = Literal["training on a GPU"]
"""Measurements of the study of the GPU, by case; the summary is the method."""

ENTRY_POINTS = "softcr.names"
"""Group of the entry points that declare names."""

NEMPC, GRADIENT_MPC = "nempc", "rod_mpc"
"""Names of softcr's two main predictive controllers."""

GOAL = "goal"
"""Name of the reference that is told its goals while it runs."""

_OWN: Names = {
    "controller": {
        NEMPC: Entry(
            "softcr_control.predictive.nempc_backend:NempcBackend",
            "evolutionary MPC, Licher et al. (2025)",
            "nempc_controller",
            predicts=True,
        ),
        GRADIENT_MPC: Entry(
            "softcr_control.predictive.gauss_newton:GaussNewtonMpc",
            "Gauss-Newton MPC on the model's derivatives",
            GRADIENT_MPC,
            predicts=True,
        ),
    },
    "estimator": {
        "rod": Entry(
            "softcr_estimation.model_filter:ModelFilter",
            "Kalman filter on the model, from the tip",
        ),
    },
    "plant": {
        "rod": Entry("softcr_simulation.plants:RodPlant", "a rod driven by pressure"),
        "model": Entry("softcr_simulation.model_plant:ModelPlant", "any model, other parameters"),
    },
    "reference": {
        GOAL: Entry(
            "softcr_control.goals.block:GoalReference",
            "moves the tip to poses, along paths or after a stream, as requested during the run",
        ),
    },
}  # fmt: skip

MOTIONS = ("setpoint", "circle", "chirp_circle", "trajectory", "tip_circle", "file")
"""Motions that the house's reference makes."""

_BLOCKS: dict[str, str] = {
    "controller": "softcr_control.controller:ControllerBlock",
    "estimator": "softcr_estimation.estimator:EstimatorBlock",
    "plant": "softcr_simulation.simulator:Simulator",
    "reference": "softcr_control.reference.block:ReferenceBlock",
}
"""Who runs a class of each kind that is no block itself."""

_METHODS: dict[str, tuple[str, ...]] = {
    "controller": ("reset", "command"),
    "estimator": ("reset", "update"),
    "plant": ("reset", "follow", "idle", "advance", "measure"),
    "reference": ("window",),
}
"""What a class of each kind must have."""


@cache
def _table() -> dict[str, dict[str, Entry]]:
    """Kind -> name -> entry of all that is declared.

    Raises:
        UserError: an installed package's declaration cannot be read, or takes a name that is taken.
    """
    table = {kind: dict(entries) for kind, entries in _OWN.items()}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            declared: Names = point.load()
        except Exception as error:  # whatever somebody's package raises
            raise UserError(f"names of {point.value}: {in_a_line(error)}") from None
        for kind, entries in declared.items():
            known = table.setdefault(kind, {})
            if taken := known.keys() & entries.keys():
                raise UserError(f"names of {point.value}: {kind} {min(taken)!r} is taken already")
            known.update(entries)
    return table


def names(kind: Kind) -> tuple[str, ...]:
    """The known names of a kind."""
    return tuple(_table()[kind])


def predictive() -> tuple[str, ...]:
    """Names of the controllers that predict."""
    return tuple(name for name, each in _table()["controller"].items() if each.predicts)


def functions(kind: Functions) -> Mapping[str, Entry]:
    """What is declared of a kind of functions, by name."""
    return _table().get(kind, {})


def places() -> set[str]:
    """Where everything with a name is, and who runs it."""
    return {_table()[kind][name].place for kind in _METHODS for name in _table()[kind]} | {
        *_BLOCKS.values()
    }


def nodes(kind: Kind) -> tuple[str, ...]:
    """Names of nodes that run something of a kind."""
    return tuple(each.node for each in _table()[kind].values() if each.node)


def choices(kind: Kind) -> tuple[str, ...]:
    """What a person can choose by a name."""
    known = tuple(f"{n}:PATH" if each.takes else n for n, each in _table()[kind].items())
    return (*MOTIONS, *known) if kind == "reference" else known


def entry(kind: Kind, name: str) -> Entry:
    """What is known of a name; of a place, the place alone.

    Raises:
        UserError: neither a known name nor a place.
    """
    known_name, _, value = name.partition(":")
    found = _table()[kind].get(known_name)
    if found is not None and (name == known_name or (found.takes and value)):
        return found
    if ":" not in name:
        known = ", ".join(choices(kind))
        raise UserError(
            f"{kind} {name!r}: unknown; {did_you_mean(name, choices(kind))}known are {known}, or "
            "give package.module:Class or "
            "path/file.py:Class"
        )
    return Entry(name, "")


def resolve(kind: Kind, name: str) -> Any:
    """The class that a name or a place means.

    Raises:
        UserError: one line about what is wrong with it.
    """
    known, (_, _, value) = entry(kind, name), name.partition(":")
    found = load_class(known.place, kind)
    if known.takes and value:
        found = with_default(found, known.takes, value)
    methods = ("tick",) if issubclass(found, BlockBase) else _METHODS[kind]
    own = [each for each in methods if getattr(found, each, None) is getattr(BlockBase, each, None)]
    missing = [each for each in methods if not callable(getattr(found, each, None))]
    if own or missing:
        raise UserError(
            f"{kind} {name!r}: lacks {', '.join({*own, *missing})}; a {kind} has "
            f"{', '.join(_METHODS[kind])}, or is a block with tick"
        )
    return found


def part(kind: Kind, name: str, parameters: Parameters) -> Part:
    """What runs the class that a name or a place means, or a motion's, with these parameters.

    Raises:
        UserError: it cannot be used.
    """
    if kind == "reference" and name in MOTIONS:
        return Part("reference", _BLOCKS[kind], {kind: name, **parameters})
    found, known = resolve(kind, name), entry(kind, name)
    if issubclass(found, BlockBase):
        return Part(known.node or found.name, known.place, parameters)
    return Part(known.node or runner(kind).name, _BLOCKS[kind], {kind: name, **parameters})


def runner(kind: Kind) -> type[BlockBase]:
    """The block that runs a class of a kind that is no block itself."""
    return load_class(_BLOCKS[kind], "block", BlockBase)
