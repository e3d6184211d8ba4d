"""What the report of a run tells of tendon-driven arms alone: their sections and tendons."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcr_papers.dalenberg2024.arm import Arm
from softcr_papers.dalenberg2024.shape_error import shape_error
from softcr_runtime.bags.signals import Signal
from softcr_runtime.console.figure_style import COMMANDED, ESTIMATE, MEASURED
from softcr_runtime.console.kind_reports import Curve, CurveRow, Curves, reduced

_SHAPES_EVERY = 25  # samples between two shapes that are compared


class ArmReport:
    """See `softcr_runtime.console.kind_reports.KindReport`."""

    key_figures: Mapping[str, tuple[str, str, str]] = {
        "shape_error_mm": (
            "model to arm", "{shape_error_mm:2 mm}",
            "E_shape; sensors {sensor_distance_mm:2 mm} and {sensor_angle_mrad:1 mrad}",
        ),
        "section_lengths_mm": (
            "section lengths", "{section_lengths_mm} mm",
            "at first {section_lengths_initial_mm} mm, racks {sections_measured_mm} mm; "
            "bounds met in {ticks_at_bounds:0} ticks",
        ),
        "pull_max_n": (
            "tendons", "{pull_max_n:1 N} largest pull",
            "following errors {following_error_mean_mm:2 mm}; held {holds:0} times",
        ),
    }  # fmt: skip

    def numbers(self, run: Any) -> dict[str, Any]:
        """The model of an arm beside the arm, and its tendons.

        `shape_error_mm` is E_shape of Dalenberg (MSc thesis), (52): the mean distance of equal
        parts of both backbones. `elongation_mm` is the mean of Psi, (50). Section lengths are
        estimated rest lengths, `sections_measured_mm` those of the racks in the arm file; sensor
        errors are what the model leaves of what the cameras see. `tendons`: mean of what they are
        off their commands [mm]; forces [N]: largest pull and, were it no tendon, push.
        """
        lengths, forces = 1e3 * _numbered(run, "rest_length").values, _forces(run).values
        psi = np.linalg.norm(run.state("estimated").values[:, 2::3], axis=1)
        racks = run.robot.model_lengths if isinstance(run.robot, Arm) else np.empty(0)
        following = 1e3 * np.abs(run.commands.minus(run.readings).values)
        return {
            "shape_error_mm": reduced(np.mean, 1e3 * shape_errors(run).values),
            "elongation_mm": reduced(np.mean, 1e3 * psi),
            "section_lengths_mm": lengths[-1].tolist() if len(lengths) else [],
            "section_lengths_initial_mm": lengths[0].tolist() if len(lengths) else [],
            "sections_measured_mm": (1e3 * racks).tolist(),
            "sensor_distance_mm": reduced(np.mean, 1e3 * _numbered(run, "distance").values),
            "sensor_angle_mrad": reduced(np.mean, 1e3 * _numbered(run, "angle").values),
            "ticks_at_bounds": run.bag.said(run.controller, "ticks_at_bounds"),
            "tendons": {
                "commanded_min_mm": reduced(np.min, 1e3 * run.commands.values),
                "commanded_max_mm": reduced(np.max, 1e3 * run.commands.values),
                "following_error_mean_mm": reduced(np.mean, following),
                "pull_max_n": reduced(np.max, -forces),
                "push_max_n": reduced(np.max, forces),
            },
            "holds": run.bag.said(run.controller, "holds"),
        }

    def figures(self, run: Any) -> Mapping[str, Curves]:
        """E_shape, forces of the tendons and lengths of the sections."""
        found, forces = {}, _forces(run)
        error = Curve("E_shape", shape_errors(run), {"color": COMMANDED})
        found["shape_error"] = Curves(
            "Shape error",
            "E_shape, the mean distance between the model's and the arm's backbone.",
            [CurveRow("distance [mm]", [error], 1e3)],
            2.5,
        )
        rows = [
            CurveRow(f"{name}\n[N]", [Curve("force", forces, {"color": ESTIMATE}, column)])
            for column, name in enumerate(forces.columns)
        ]
        found["tendon_forces"] = Curves("Tendon forces", "negative if a tendon pulls.", rows)
        rest, states = _numbered(run, "rest_length"), run.state("estimated")
        if len(rest) == len(states) > 0:
            whole = rest.like(rest.stamps, rest.values + states.values[:, 2::3])
            measured = run.robot.model_lengths if isinstance(run.robot, Arm) else ()
            between = [("between racks", float(each)) for each in measured]
            sections = range(rest.values.shape[1])
            rows = [
                CurveRow(
                    f"section {number + 1}\n[mm]",
                    [
                        Curve("with elongation", whole, {"color": MEASURED}, number),
                        Curve("rest length", rest, {"color": ESTIMATE}, number),
                    ],
                    1e3,
                    between[number] if number < len(between) else None,
                )
                for number in sections
            ]
            caption = (
                "the controller's estimates of the sections' lengths, without and with their "
                "elongation."
            )
            found["section_lengths"] = Curves("Section lengths", caption, rows)
        return found

    def problems(self, run: Any) -> Sequence[str]:
        """A tendon that pushes."""
        if not (_forces(run).values > 0.0).any():
            return ()
        return ["tendons push at times, as in the thesis's simulations; a real tendon goes slack"]


def shape_errors(run: Any) -> Signal:
    """(K,) E_shape [m] twice a second; empty without a truth, an estimate or the arm's data."""
    true, found, lengths = run.state("true"), run.state("estimated"), _numbered(run, "rest_length")
    stamps, of_true, of_found = np.intersect1d(
        true.stamps, found.stamps, assume_unique=True, return_indices=True
    )
    if not isinstance(run.robot, Arm) or not len(stamps) or len(lengths) != len(found):
        return Signal(np.empty(0, np.int64), np.empty(0))
    arm, picked = run.robot, np.arange(0, len(stamps), _SHAPES_EVERY)
    errors = [
        shape_error(
            arm.chain, true.values[of_true[k]], arm.rest_lengths,
            arm.model, found.values[of_found[k]], lengths.values[of_found[k]],
        )
        for k in picked
    ]  # fmt: skip
    return Signal(stamps[picked], np.array(errors))


def _forces(run: Any) -> Signal:
    signal: Signal = run.bag.signal(run.readings.topic, "force")
    return signal


def _numbered(run: Any, name: str) -> Signal:
    """(T, k) of the estimate's numbers NAME_1, NAME_2, ..."""
    found: list[Signal] = []
    while len(each := run.bag.signal("estimate/state", f"parameter.{name}_{len(found) + 1}")):
        found.append(each)
    if not found:
        return Signal(np.empty(0, np.int64), np.empty((0, 0)))
    return found[0].like(found[0].stamps, np.stack([each.values for each in found], axis=1))
