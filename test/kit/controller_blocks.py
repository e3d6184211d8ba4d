"""A controller that answers as it is told, the block around one, and what the block hears."""

import numpy as np

from softcr_control.controller import ControllerBlock
from softcr_models import load_robot
from softcr_models.model import nominal_parameters
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.values import ReferenceRows, StateEstimate


class Asks:
    """A controller that answers what it is told to, and keeps what it is asked and told."""

    def __init__(self):
        self.answer, self.resets, self.seen, self.taken_over = np.zeros(3), 0, [], []

    def reset(self):
        self.resets += 1

    def take_over(self, packets):
        self.taken_over.extend(packets)

    def command(self, observation):
        self.seen.append(observation)
        return self.answer


def block_of(make=None, **told):
    """The block of a controller of a coarse rod."""
    chosen = {"controller": "rod_mpc", "intervals": 2, **told}
    block = ControllerBlock
    return block(load_robot("licher2025"), block.settings_of(chosen), make)


def samples_at(stamp, values):
    """Values by topic as samples of one stamp."""
    return {topic: Sample(topic, stamp, value, 0.0) for topic, value in values.items()}


NOTHING, NOWHERE = np.zeros(3), np.zeros((9, 3))


def at_rest(block, stamp, inputs=NOTHING, parameters=None, tips=NOWHERE, **rows):
    """Samples of an estimate of a rod at rest, made with some inputs, and of a reference."""
    nominal = nominal_parameters(block.model.parameters)
    state = block.model.equilibrium(np.zeros(3), nominal)
    period = block.settings.period
    wanted = ReferenceRows(stamp, period, np.tile(state, (len(tips), 1)), tips, **rows)
    estimate = StateEstimate(state, parameters or {}, inputs=inputs)
    return samples_at(stamp, {"estimate/rod": estimate, "reference/rod": wanted})
