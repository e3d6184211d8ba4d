"""Timed pulses that raise the pressure of a chamber, by the flow that was seen of its valve."""

from softcr_hardware.commissioning.session import Session
from softcr_hardware.commissioning.steps.survey import Survey, dose_of, own_rise


def filled(session: Session, channel: int) -> None:
    """Fill a vented chamber to what the survey had there, and keep it closed.

    Raises:
        Interrupted: see Drive.
    """
    survey = Survey.model_validate(session.value("survey", "survey"))
    strength = abs(own_rise(survey, channel)) / survey.expected
    dose = dose_of(strength, session.bench.station.flow)
    session.drive.fill(channel, dose.opening, dose.fill)
