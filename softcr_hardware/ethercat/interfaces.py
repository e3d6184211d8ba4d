"""Network interfaces, as master and emulator need them: present, allowed, owned by one process."""

import errno
import socket
import struct

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


def own_interface(name: str) -> socket.socket:
    """Become the one master on an interface; ends when the returned socket is closed.

    A second master would open without an error and reset the slaves under the first. The name is
    taken in the kernel's own space of names, which belongs to the interfaces and has no files.

    Raises:
        UserError: another process is the master.
    """
    lock, address = socket.socket(socket.AF_UNIX), f"\0softcr-ethercat-{name}"
    try:
        lock.bind(address)
        lock.listen()
    except OSError as error:
        lock.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise UserError(
            f"interface {name!r}: process {_owner(address)} is the EtherCAT master already; stop "
            "it first"
        ) from None
    return lock


def _owner(address: str) -> str:
    """The number of the process that listens there."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(1.0)
        try:
            asking.connect(address)
        except OSError:
            return "unknown"
        told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return str(struct.unpack("iII", told)[0])  # unix(7): process, user, group
