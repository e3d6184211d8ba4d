"""`softcr ros`: the list of the commands for running nodes."""

from softcr_runtime.settings.command_line import new_app
from softcr_tools.ros import COMMANDS

app = new_app(
    "ros",
    "Inspect and control running nodes without the ros2 command. Each of these is a command of "
    "softcr itself, too: softcr call is softcr ros call.",
)

for _order, (_name, (_place, _text)) in enumerate(COMMANDS.items()):
    app.command(f"softcr_tools.{_place}", name=_name, help=_text, sort_key=_order)
