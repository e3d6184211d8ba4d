"""A Koopman controller as files: arrays in STEM.npz, everything else in STEM.json."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_models.files.small_files import arrays_of, content_of, parsed_json
from softcr_studies.koopman.lifted_model import KoopmanModel, Lift, Scaling
from softcr_studies.koopman.lqr import KoopmanDesign, StaticModel, Weights


def save_design(stem: Path, design: KoopmanDesign) -> None:
    """Writes STEM.npz, then STEM.json, so that a description always has its arrays.

    Raises:
        OSError: they cannot be written.
    """
    model, static = design.model, design.static
    np.savez(
        stem.with_suffix(".npz"),
        transition=model.transition,
        input_matrix=model.input_matrix,
        constant=model.constant,
        slopes=static.slopes,
        intercept=static.intercept,
        **_packed("model_outputs", model.output_scaling),
        **_packed("model_inputs", model.input_scaling),
        **_packed("static_outputs", static.output_scaling),
        **_packed("static_inputs", static.input_scaling),
    )
    described = {
        "period": model.period,
        "lift": asdict(model.lift),
        "static_degree": static.degree,
        "weights": asdict(design.weights),
    }
    text = json.dumps(described, indent=2, allow_nan=False)
    stem.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def load_design(stem: Path) -> KoopmanDesign:
    """What `save_design` wrote.

    Raises:
        UserError: absent, or not such files.
    """
    try:
        described = parsed_json(content_of(stem.with_suffix(".json")))
        arrays = arrays_of(stem.with_suffix(".npz"))
        model = KoopmanModel(
            float(described["period"]),
            Lift(**described["lift"]),
            _unpacked("model_outputs", arrays),
            _unpacked("model_inputs", arrays),
            arrays["transition"],
            arrays["input_matrix"],
            arrays["constant"],
        )
        static = StaticModel(
            int(described["static_degree"]),
            _unpacked("static_outputs", arrays),
            _unpacked("static_inputs", arrays),
            arrays["slopes"],
            arrays["intercept"],
        )
        return KoopmanDesign(model, static, Weights(**described["weights"]))
    except (OSError, KeyError, TypeError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{stem}: cannot be read as a Koopman design: {problem}") from None


def _packed(name: str, scaling: Scaling) -> dict[str, Any]:
    return {f"{name}_offset": scaling.offset, f"{name}_scale": scaling.scale}


def _unpacked(name: str, arrays: dict[str, np.ndarray]) -> Scaling:
    return Scaling(arrays[f"{name}_offset"], arrays[f"{name}_scale"])
