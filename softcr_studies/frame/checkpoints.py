"""Checkpoints of trainings as files that hold numbers and nothing that can be run (safetensors).

The file's metadata holds, as JSON, the tree of what was saved, in which an array is a name.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from softcr_models.errors import UserError
from softcr_models.files.small_files import LARGEST, parsed_json, regular

LARGEST_CHECKPOINT = 512 << 20
"""Of a file [byte]."""

_TREE, _ARRAY, _TENSOR, _DICT = "tree", "array", "tensor", "dict"


def save(path: Path, content: Any) -> None:
    """Writes a checkpoint, whole or not at all.

    Args:
        path: of the file.
        content: dictionaries with names or numbers as keys, lists and tuples of numbers, texts,
            arrays of numpy and tensors of torch. A tuple comes back as a list.

    Raises:
        UserError: the arrays are larger than `LARGEST_CHECKPOINT`.
        OSError: the file cannot be written.
    """
    arrays: dict[str, np.ndarray] = {}
    tree = json.dumps(_taken_apart(content, arrays))
    size = len(tree) + sum(each.nbytes for each in arrays.values())
    if size > LARGEST_CHECKPOINT:
        raise UserError(
            f"{path}: the checkpoint would have {size} bytes, allowed are {LARGEST_CHECKPOINT}; "
            "let the training keep fewer samples"
        )
    part = path.with_name(path.name + ".part")
    save_file(arrays, part, {_TREE: tree})
    part.replace(path)


def resume(path: Path, take: Callable[[Any], None]) -> bool:
    """Reads what `save` wrote last, if there is such a file.

    Args:
        path: of the file.
        take: puts the content in its place.

    Returns:
        Whether there was a file.

    Raises:
        UserError: the file cannot be read, or `take` found something else than it needs.
    """
    if not path.exists():
        return False
    try:
        content = _read(path)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read as a checkpoint: {_reason(error)}") from None
    try:
        take(content)
    except (
        AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise UserError(
            f"{path}: does not fit this training: {_reason(error)}; remove it, or name another "
            "folder"
        ) from None
    return True


def put_optimiser(optimiser: torch.optim.Optimizer, kept: dict[str, Any]) -> None:
    """Gives an optimiser the state that it had.

    Args:
        optimiser: of the same parameters, before its first step.
        kept: its `state_dict()` of that time.

    Raises:
        ValueError: the state is that of other parameters, or of another optimiser.
    """
    for own, other in zip(optimiser.param_groups, kept["param_groups"], strict=True):
        for name, value in own.items():
            if name == "params":
                continue
            found = tuple(other[name]) if isinstance(value, tuple) else other[name]
            if type(found) is not type(value):
                raise ValueError(f"{name} of the optimiser is {found!r}, as is {value!r} here")
    parameters = [each for group in optimiser.param_groups for each in group["params"]]
    for number, state in kept["state"].items():
        parameter = parameters[number]
        own = optimiser.state.get(parameter, {})
        for name, value in state.items():
            if value.shape not in ((), own.get(name, parameter).shape):
                raise ValueError(f"{name} of parameter {number} has the shape {tuple(value.shape)}")
    optimiser.load_state_dict(kept)


def _read(path: Path) -> Any:
    with safe_open(regular(path, LARGEST_CHECKPOINT), "np") as file:
        tree = (file.metadata() or {})[_TREE]
        if len(tree) > LARGEST:
            raise ValueError(f"its tree has {len(tree)} bytes, allowed are {LARGEST}")
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return _put_together(parsed_json(tree), arrays)


def _taken_apart(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value as JSON, whose arrays go into `arrays`."""
    if isinstance(value, dict):
        return {_DICT: [[key, _taken_apart(each, arrays)] for key, each in value.items()]}
    if isinstance(value, list | tuple):
        return [_taken_apart(each, arrays) for each in value]
    if isinstance(value, torch.Tensor):
        name = _taken_apart(value.detach().cpu().numpy(), arrays)[_ARRAY]
        return {_TENSOR: name}
    if isinstance(value, np.ndarray):
        name = str(len(arrays))
        arrays[name] = np.asarray(value, order="C")
        return {_ARRAY: name}
    return value.item() if isinstance(value, np.generic) else value


def _put_together(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """What `_taken_apart` took apart."""
    if isinstance(tree, list):
        return [_put_together(each, arrays) for each in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, what),) = tree.items()
    if kind == _DICT:
        return {key: _put_together(each, arrays) for key, each in what}
    return torch.from_numpy(arrays[what]) if kind == _TENSOR else arrays[what]


def _reason(error: Exception) -> str:
    """One line of what was wrong."""
    name = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
    return next(iter(name.splitlines()), "") or type(error).__name__
