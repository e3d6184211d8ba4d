"""What this paper adds to the names of controllers."""

from softcr_runtime.settings.registry import Entry, Names

NAMES: Names = {
    "controller": {
        "nlsq": Entry(
            "softcr_papers.pawlowski2019.lookahead.nlsq:Nlsq",
            "nonlinear least squares over steps of held inputs, Pawlowski (2019)",
            predicts=True,
        ),
        "lqr": Entry(
            "softcr_papers.pawlowski2019.lookahead.lqr:Lqr",
            "linear-quadratic tracking of the tip, linearised in every step, Pawlowski (2019)",
            predicts=True,
        ),
        "ilqr": Entry(
            "softcr_papers.pawlowski2019.lookahead.ilqr:Ilqr",
            "iterative linear-quadratic tracking with inputs in their box, Pawlowski (2019)",
            predicts=True,
        ),
        "quasi_static": Entry(
            "softcr_papers.pawlowski2019.quasi_static:QuasiStatic",
            "small changes by the Jacobian of the statics, Pawlowski (2019)",
        ),
        "policy": Entry(
            "softcr_papers.pawlowski2019.policy.controller:PolicyController",
            "a learned policy; `policy:PATH` names its file",
            "policy",
            takes="policy",
        ),
    },
}  # fmt: skip
