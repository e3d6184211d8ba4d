"""What Mehl et al. (2024) claim, as rows of our tables."""

from softcr_papers.mehl2024.studies.base_sensor_filter import CC_UKF, IDENTIFIED
from softcr_studies.frame.claims import Claim

_STUDY = "mehl2024/base-sensor-filter"
_ALSO = tuple(f"NRMSE {name}" for name in ("Δx", "Δy", "δL", "Δx'", "Δy'", "δL'"))


def _of_filter(says: str, quantity: str | tuple[str, ...], why: str = "") -> Claim:
    return Claim(says, _STUDY, quantity, (IDENTIFIED,), (CC_UKF,), why=why)


CLAIMS = (
    _of_filter("The filter finds the shape from the sensor under the base (Table II): mean NRMSE",
               "NRMSE mean"),
    _of_filter("NRMSE of each coordinate and rate", _ALSO),
    _of_filter("NRMSE of its worst part", "NRMSE mean, worst part"),
    _of_filter("Tip error", "tip error"),
    _of_filter("Tip velocity error", "tip velocity error"),
    _of_filter("It converges from the straight pose; two of ten parts do not in the paper",
               "parts not converged"),
    Claim("It runs 13 to 14 times faster than real time", _STUDY, "tick", (IDENTIFIED,), (CC_UKF,)),
    Claim("The same with the printed Q, R and P0", _STUDY, "NRMSE mean", (IDENTIFIED,),
          ("CC-UKF, published Q R P0",)),
)  # fmt: skip
