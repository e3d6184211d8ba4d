"""Controllers whose node refuses to come up; for tests of the way down."""

from pydantic import BaseModel

from softcr_models.errors import UserError


class NoSettings(BaseModel):
    """None."""


class RefusesActivate:
    """Lets the node refuse when it is activated."""

    Settings = NoSettings
    needs_state = False

    def __init__(self, context, settings):
        from softcr_runtime.ros.block_node import BlockNode

        BlockNode.on_activate_node = _refuse
        self.input_size = context.model.input_size

    def reset(self):
        pass

    def command(self, observation):
        raise AssertionError("never active")


class RefusesConfigure(RefusesActivate):
    """Refuses when the node is configured."""

    def __init__(self, context, settings):
        raise UserError("this controller is never configured")


def _refuse(node):
    raise UserError("this controller is never active")
