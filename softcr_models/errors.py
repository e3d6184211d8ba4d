"""The one exception for mistakes a user can mend."""


class UserError(Exception):
    """A mistake in a file, an option or a device name; `str(error)` is the one line to show.

    The line says what is wrong, where, which value was found and what is allowed.
    """
