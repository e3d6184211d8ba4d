"""What Licher et al. (2025) claim, as rows of our tables."""

from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_studies.frame.claims import Claim

PAPER = "nempc_states"
"""The paper's controller, cost on the state, with tuned weights."""
_COST = "the paper's cost is on states; with the printed weights the error is larger still"
_WHERE = (
    ("tracking-fast", "tip error", "Tracking to 1.5 Hz (Exp. 4a)"),
    ("setpoint", "settled tip error", "A setpoint (Exp. 4b)"),
    ("tracking-slow", "tip error", "Tracking to 0.2 Hz (Exp. 5a)"),
    ("setpoint-edge", "settled tip error", "A setpoint on the edge (Exp. 5b)"),
    ("circles", "tip error", "Circles of 0.2 to 1.5 Hz (Exp. 5c)"),
)
_RATIO = "ratio of tip errors"


def _surrogate(says: str, quantity: str) -> Claim:
    return Claim(says, "licher2025/surrogate-accuracy", quantity, ("smooth 70 %",), ("network",))


CLAIMS = (
    Claim("The identified rod predicts a motion that it has not seen (Sec. III-I)",
          "licher2025/identification", "tip error"),
    _surrogate("The surrogate moves as its rod (Table IV): tip", "tip position"),
    _surrogate("... rotation of the tip", "tip rotation"),
    _surrogate("... force at the base", "base force"),
    _surrogate("... moment at the base", "base moment"),
    Claim("A step of the surrogate on a processor (Table V)", "licher2025/surrogate-accuracy",
          "median time", ("batch 1",), ("network, float32",)),
    Claim("A step of 1000 candidates, published on a GPU, ours on a processor (Table V)",
          "licher2025/surrogate-accuracy", "median time", ("batch 1000",), ("network, float32",),
          why="`speed/gpu` has our figures of a GPU"),
    Claim("The filter finds the bending compliance (Exp. 3): error", "licher2025/compliance",
          "compliance error"),
    Claim("... and how soon", "licher2025/compliance", "time to 2 %"),
    *(Claim(f"{what}, the paper's controller", f"licher2025/{study}", quantity, methods=(PAPER,),
            why=_COST) for study, quantity, what in _WHERE),
    *(Claim(f"{what}, ours", f"licher2025/{study}", quantity, methods=(NEMPC, GRADIENT_MPC))
      for study, quantity, what in _WHERE),
    Claim("It is better than the Koopman LQR (Exp. 5a)", "licher2025/tracking-slow", "tip error",
          methods=(PAPER,), than="koopman",
          why="our Koopman model is refitted to this rod, and better than the published one"),
    Claim("The adapted compliance lowers the error to a third (Exp. 6), the paper's controller",
          "licher2025/adaptation", _RATIO, methods=(PAPER,), why=_COST),
    Claim("... with ours", "licher2025/adaptation", _RATIO, methods=(NEMPC, GRADIENT_MPC)),
)  # fmt: skip
