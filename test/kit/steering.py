"""Controllers that steer a model, which is known exactly."""

import numpy as np

from kit.models import PERIOD, ask
from softcr_control.reference.references import Reference
from softcr_models.model import nominal_parameters


def steered(controller, plant, reference, ticks, state, felt, active=None, delay=1, told=1):
    """States (ticks + 1, nx) of a plant and a controller's answers; a reference is asked for by
    time and rows. An answer acts `delay` ticks later, through the plant's lag where it has one, and
    before the first one the inputs that are felt or `active`."""
    queue, states, answers = [felt if active is None else active] * delay, [state], []
    nominal, lag = nominal_parameters(plant.parameters)[None], plant.inputs.lag
    for k in range(ticks):
        wanted = reference(k * PERIOD, controller.rows)
        answers.append(ask(controller, states[-1], wanted, felt, delay=told))
        queue.append(answers[-1].pressures)
        acting = queue.pop(0)
        later = acting if lag is None else lag.step(felt, acting, PERIOD)
        states.append(plant.step(states[-1][None], felt[None], later[None], nominal, PERIOD)[0])
        felt = later
    return np.array(states), answers


def standing(tip, states=None):
    """References whose tip stands still, and whose state does where one is told."""

    def reference(time, rows):
        known = None if states is None else np.tile(states, (rows, 1))
        return Reference(time, PERIOD, known, np.tile(tip, (rows, 1)))

    return reference
