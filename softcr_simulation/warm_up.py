"""The kernels of simulated plants, see `softcr_models.warm_up`."""

from pathlib import Path

import numpy as np

from softcr_models.robots.robot import load_robot
from softcr_models.warm_up import Part
from softcr_simulation.beam.beam import Beam
from softcr_simulation.errors.plant_errors import load_plant_errors
from softcr_simulation.structural_plant import StructuralPlant

_HERE = Path(__file__).parent
_BEAM, _EFFECTS = _HERE / "beam", _HERE / "plant_effects"


def _beam() -> None:
    beam = Beam(load_robot("licher2025"))
    straight = np.tile(np.eye(3, 4), (len(beam.poses), 1, 1))
    straight[:, 2, 3] = beam.rod.node_arcs
    beam.place(straight)
    beam.advance(np.zeros((2, beam.rod.input_size)), 1e-3)
    beam.base_wrench(np.zeros(beam.rod.input_size))


def _plant() -> None:
    plant = StructuralPlant(load_robot("licher2025"), load_plant_errors("typical"))
    plant.advance(0.01)
    plant.measure(0)


PLANT = (
    Part("beam", _beam, 7.5, sources=(_BEAM,)),
    Part("plant", _plant, 1.0, last=True, sources=(_BEAM, _EFFECTS)),
)
"""What plants with errors call, whichever errors."""
