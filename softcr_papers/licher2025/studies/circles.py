"""Experiment 5c of Licher et al. 2025, Sec. V-B3: circles, faster and faster.

The paper's bench goes through all frequencies in one run, two turns at each; here each is a run.
"""

from softcr_studies.loops.tracking_loop import circle
from softcr_studies.loops.tracking_study import TIP, musts, published, tracking_study

_PUBLISHED = {
    0.2: (3.7, 6.8), 0.4: (8.7, 8.0), 0.6: (8.9, 10.4),
    0.8: (8.4, 12.3), 1.0: (7.3, 13.9), 1.5: (18.2, 18.1),
}  # fmt: skip


STUDY = tracking_study(
    "licher2025/circles",
    "Licher et al. 2025, Sec. V-B3, Experiment 5c",
    "the test bench's circles of 0.2 to 1.5 Hz, simulated, with every controller",
    [circle(frequency) for frequency in _PUBLISHED],
    published=[
        figure
        for frequency, (mpc, koopman) in _PUBLISHED.items()
        for figure in published(TIP, mpc, koopman, "bench", circle(frequency).name)
    ],
    musts=musts(nempc=(2.0, 0.7), rod_mpc=(2.0, 0.7)),
)
