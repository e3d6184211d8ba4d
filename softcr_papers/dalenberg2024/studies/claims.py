"""What Dalenberg (2024) claims, as rows of our tables."""

from softcr_papers.dalenberg2024.studies import other_plants, section_lengths
from softcr_studies.frame.claims import Claim

_LENGTHS, _RATIO = "dalenberg2024/section-lengths", other_plants.RATIO
_PRINTED, _WEAK = "A-PCC, Γ printed", "A-PCC, Γ / 1000"
_SHAPE, _COST = "E_shape over that of fixed lengths", "Psi over that of fixed lengths"
_OPEN = (
    "the arms are reconstructions of what the thesis prints, whose sensors, setpoints and filter "
    "are not known"
)
_RUNS_AWAY = (
    "with the printed gains the lengths run into their bounds, since the inferred "
    "configuration makes up for them; the thesis's stability proof knows q"
)


def _on_arm(study: str, arm: str, method: str, quantity: str, what: str, why: str) -> Claim:
    gains = "the printed gains" if method == _PRINTED else "a thousandth of them"
    return Claim(f"{arm}: adaptive lengths lower {what}, with {gains}", f"dalenberg2024/{study}",
                 quantity, methods=(method,), bound=1.0, why=why)  # fmt: skip


CLAIMS = (
    Claim(
        "Kinematic arm: the tip error vanishes (Fig. 7), straight start, 1 ms",
        _LENGTHS, section_lengths.RMS, (section_lengths.STRAIGHT.name,),
        (section_lengths.COMMANDED,), bound=1.0,
    ),
    Claim(
        "It finds the section lengths (Fig. 8), straight start, 1 ms",
        _LENGTHS, "length error", (section_lengths.STRAIGHT.name,), (section_lengths.COMMANDED,),
        bound=3.0,
    ),
    Claim(
        "... from bent starts, 10 ms",
        _LENGTHS, "length error", (section_lengths.BENT.name,), (section_lengths.COMMANDED,),
        bound=3.0, why="the motion does not excite all lengths; the proof promises none",
    ),
    *(
        _on_arm(study, arm, method, quantity, what, _RUNS_AWAY if method == _PRINTED else _OPEN)
        for study, arm in (("robot-1", "Robot I"), ("robot-2", "Robot II"))
        for quantity, what in ((_SHAPE, "E_shape"), (_COST, "Psi"))
        for method in (_PRINTED, _WEAK)
    ),
    *(
        _on_arm("hardware-experiments", "Experiment II, simulated", method, quantity, what,
                _RUNS_AWAY if method == _PRINTED else _OPEN)
        for quantity, what in (
            ("Psi² mean over that of fixed lengths", "Psi²"),
            ("E_mapping mean over that of fixed lengths", "E_mapping"),
        )
        for method in (_PRINTED, _WEAK)
    ),
    Claim(
        "Experiment II, simulated: the adaptive controller gets to 1 mm sooner",
        "dalenberg2024/hardware-experiments", "time to 1 mm (R23)",
        methods=(_PRINTED, _WEAK), why="no run gets there and stays with its model, "
        "of the fixed controller neither",
    ),
    Claim(
        "Beyond the thesis: on exact rods the controllers leave at most twice the tip error of the "
        "model's own arm",
        "dalenberg2024/other-plants",
        (_RATIO.format(other_plants.TIP), _RATIO.format(other_plants.MEAN)), bound=2.0,
        why="in the last second both are a millimetre or two, which the secondary objective leaves",
    ),
)  # fmt: skip
