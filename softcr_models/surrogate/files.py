"""Networks as files: NAME.safetensors (numbers only, no code) and NAME.json (the card)."""

from pathlib import Path

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_models.files.problems import first_problem
from softcr_models.files.small_files import LARGEST_ARRAYS, content_of, regular
from softcr_models.rod.state import state_size
from softcr_models.surrogate.card import Card
from softcr_models.surrogate.ddpinn import DDPINN


def save(network: DDPINN, card: Card, path: Path) -> None:
    """Writes PATH.safetensors and PATH.json, each whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.contiguous() for name, value in network.state_dict().items()}
    weights, sheet = files_of(path)
    for target, write in (
        (weights, lambda name: save_file(tensors, name)),
        (sheet, lambda name: name.write_text(card.model_dump_json(indent=1) + "\n")),
    ):
        part = target.with_name(target.name + ".part")
        write(part)
        part.replace(target)


def load(name_or_path: str | Path) -> tuple[DDPINN, Card]:
    """The network `config/surrogates/NAME`, or the one whose files lie at a path.

    Raises:
        UserError: one line, if there is no such network or its files are truncated, do not belong
            together or hold numbers that are not finite.
    """
    path = _path_of(name_or_path)
    weights, sheet = files_of(path)
    try:
        card = Card.model_validate_json(content_of(sheet))
    except OSError as error:
        raise UserError(f"{sheet}: cannot be read as a training card: {error.strerror}") from None
    except ValidationError as error:
        problem = first_problem(error, Card)
        raise UserError(f"{sheet}: {problem}: not a training card") from None
    try:
        tensors = load_file(regular(weights, LARGEST_ARRAYS))
    except (SafetensorError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{weights}: cannot be read as weights: {reason}") from None
    try:
        with torch.device("meta"):  # a card may ask for any size
            expected = DDPINN(card.architecture, card.inputs, *_sizes(card)).state_dict()
    except RuntimeError:
        raise UserError(f"{weights}: its card asks for more numbers than can be counted") from None
    for name in sorted({*tensors, *expected}):
        if name not in expected:
            raise UserError(f"{weights}: holds {name!r}, which its card {sheet.name} does not know")
        if name not in tensors:
            raise UserError(f"{weights}: lacks {name!r}, which its card {sheet.name} asks for")
        found, wanted = tuple(tensors[name].shape), tuple(expected[name].shape)
        if found != wanted:
            raise UserError(f"{weights}: {name} has shape {found}, its card asks for {wanted}")
        if not torch.isfinite(tensors[name]).all():
            raise UserError(f"{weights}: {name} holds numbers that are not finite")
    network = DDPINN(card.architecture, card.inputs, *_sizes(card))
    network.load_state_dict(tensors)
    return network.eval().requires_grad_(False), card


def _sizes(card: Card) -> tuple[int, int]:
    """Number of states, and of segments."""
    return state_size(card.intervals * card.segments, card.segments), card.segments


def files_of(path: Path) -> tuple[Path, Path]:
    """Weights and card of the network at a path without ending."""
    return path.with_name(path.name + ".safetensors"), path.with_name(path.name + ".json")


def available_networks() -> list[str]:
    """Names that `load` knows."""
    return sorted(path.stem for path in (config_directory() / "surrogates").glob("*.safetensors"))


def _path_of(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix in (".safetensors", ".json") or path.parent != Path("."):
        path = path.with_suffix("") if path.suffix in (".safetensors", ".json") else path
        if not files_of(path)[0].is_file():
            raise UserError(f"network {path}.safetensors: no such file")
        return path
    shipped = config_directory() / "surrogates" / str(name_or_path)
    if not files_of(shipped)[0].is_file():
        known = ", ".join(available_networks()) or "none"
        raise UserError(
            f"network {str(name_or_path)!r}: unknown; known are {known}, or give a path; "
            f"`softcr train --robot {name_or_path}` makes one"
        )
    return shipped
