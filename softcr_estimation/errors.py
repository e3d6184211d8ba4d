"""What the estimators raise."""

from softcr_models.errors import UserError


class EstimatorError(UserError, ValueError):
    """An input or a setting that an estimator refuses; `str(error)` is the one line that says why.

    The estimator is left as it was.
    """
