"""Priors and walks of the pressure chain, and how far the filter reopens: chosen on some random
plants, judged on others.

Every variant changes one kind of number by a factor. The one with the smallest mean error on the
TRAIN plants is run on the TEST plants, beside the shipped numbers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pydantic import Field

from softcr_estimation import ModelEstimatorSettings
from softcr_estimation.estimator_settings import ALL_GAINS
from softcr_models import load_robot
from softcr_models.model import Parameter
from softcr_models.models import make_model
from softcr_models.rod.parameters import PAYLOAD
from softcr_studies.frame.study import Cell, Result, Results, Study, StudySettings
from softcr_studies.loops import drawn_plants
from softcr_studies.loops.compared_loops import CHAINED, EVERYTHING, LOOPS, OURS, PLAIN
from softcr_studies.loops.drawn_plants import TEST_MOTIONS, TRAIN_MOTION

SHIPPED = "shipped"


@dataclass(frozen=True)
class Factors:
    """On the shipped numbers [-].

    Attributes:
        priors: on deviations at the start of the chain's parameters.
        walks: on their random walks.
        hoses: on the deviations at the start of the hoses' weights, beside `priors`.
        gains: on the deviations at the start of the pressures' gains.
        compliance: on the deviation at the start of the bending compliance.
        payload: on the deviation at the start of the payload.
        states: on the random walk of the states.
        opening: on how fast all parameters may walk while the filter finds that it is wrong.
    """

    priors: float = 1.0
    walks: float = 1.0
    hoses: float = 1.0
    gains: float = 1.0
    compliance: float = 1.0
    payload: float = 1.0
    states: float = 1.0
    opening: float = 1.0

    @property
    def settings(self) -> ModelEstimatorSettings:
        """Numbers of the filter."""
        of_rod = {each.name for each in make_model("rod", load_robot(PLAIN)).parameters}
        model = make_model("rod", load_robot(CHAINED))
        known = {each.name: each for each in model.parameters}
        own = [each for name, each in known.items() if name not in of_rod]
        compliance = known["bending_compliance"]
        return EVERYTHING.model_copy(
            update={
                "deviations": {
                    **{each.name: self._prior(each) for each in own},
                    compliance.name: self.compliance * compliance.deviation,
                    ALL_GAINS: self.gains * model.inputs.gain_deviation,
                },
                "noises": {each.name: self.walks * each.noise * each.scale for each in own},
                "state_noise": self.states * EVERYTHING.state_noise,
                "opening_factor": self.opening,
            }
        )

    def _prior(self, parameter: Parameter) -> float:
        """A deviation at the start, in the parameter's unit."""
        factor = self.payload if parameter.name == PAYLOAD.name else self.priors
        if parameter.name.startswith("hose"):
            factor *= self.hoses
        return factor * parameter.deviation * parameter.scale


VARIANTS: Mapping[str, Factors] = {
    SHIPPED: Factors(),
    "priors x 0.5": Factors(priors=0.5),
    "priors x 2": Factors(priors=2.0),
    "priors x 4": Factors(priors=4.0),
    "walks x 0.3": Factors(walks=0.3),
    "walks x 3": Factors(walks=3.0),
    "hoses x 2": Factors(hoses=2.0),
    "gains x 0.2": Factors(gains=0.2),
    "compliance x 0.7": Factors(compliance=0.7),
    "compliance x 1.4": Factors(compliance=1.4),
    "payload x 10": Factors(payload=10.0),
    "states x 0.7": Factors(states=0.7),
    "states x 1.4": Factors(states=1.4),
    "opening x 0.5": Factors(opening=0.5),
    "opening x 2": Factors(opening=2.0),
}


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(12, ge=2, le=1000, description="random plants of each split")


def run(cell: Cell) -> Result:
    """One plant with a variant of the filter."""
    return drawn_plants.run_drawn(cell, replace(LOOPS[OURS], filter=VARIANTS[cell.method].settings))


def later(results: Results) -> Iterable[Cell]:
    """The TEST plants, for the shipped numbers and the chosen ones."""
    return drawn_plants.judged(results, SHIPPED, TEST_MOTIONS)


STUDY = Study(
    name="tuning/chain",
    source="",
    summary="priors and walks of the pressure chain, and the reopening, on random plants",
    run=run,
    cases=(TRAIN_MOTION,),
    methods=tuple(VARIANTS),
    settings=Settings,
    exact=f"{drawn_plants.SPLIT}A seed is a plant. Each variant changes one kind of number: priors "
    "and walks are the chain's deviations at the start and its random walks, opening is how fast "
    "all parameters may walk while the innovations are coloured. The variant with the smallest "
    "mean error on the TRAIN plants is judged on the TEST plants. Errors count from 2 s to 6 s; a "
    f"run whose filter or plant was lost counts {drawn_plants.LOST_MM:g} mm.",
    further_rows=drawn_plants.choice_rows,
    later=later,
)
