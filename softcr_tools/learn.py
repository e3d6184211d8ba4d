"""`softcr learn`: what can be learned from recordings and in simulation, a command each."""

from softcr_runtime.settings.command_line import declared_commands, new_app

app = new_app("learn", "Learn a strain model, a policy, or a repeated motion.")
app.command(
    "softcr_tools.learn_motion:motion", name="motion",
    help="Learn from a run how the next repetition of its motion should aim.",
)  # fmt: skip
for _name, (_place, _text) in declared_commands("softcr learn", ("motion",)).items():
    app.command(_place, name=_name, help=_text)
