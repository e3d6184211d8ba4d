"""Network interfaces, as master and emulator need them: present, allowed, owned by one process."""

import fcntl
import os
import socket
import tempfile
from pathlib import Path
from typing import TextIO

from softcr_models.errors import UserError


def check_interface(name: str) -> None:
    """Whether there is such a network interface.

    Raises:
        UserError: there is none; names those there are.
    """
    there = [found for _, found in socket.if_nameindex()]
    if name not in there:
        raise UserError(f"interface {name!r}: not found; there are {', '.join(there)}")


def needs_privileges(name: str) -> UserError:
    """What to say when raw frames are not allowed."""
    return UserError(
        f"interface {name!r}: raw EtherCAT frames need root or CAP_NET_RAW; run as root, or: "
        "sudo setcap cap_net_raw+ep $(readlink -f .venv/bin/python)"
    )


def own_interface(name: str) -> TextIO:
    """Become the one master on an interface; ends when the returned file is closed.

    A second master would open without an error and reset the slaves under the first.

    Raises:
        UserError: another process is the master.
    """
    place = Path(tempfile.gettempdir()) / f"softcr-ethercat-{name}.lock"
    file = place.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        owner = file.read().strip() or "unknown"
        file.close()
        raise UserError(
            f"interface {name!r}: process {owner} is the EtherCAT master already; stop it first"
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file
