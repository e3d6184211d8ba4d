"""Which systems run on this machine: each holds a lock that bears its domain and namespace.

The lock is a socket of Linux's abstract namespace (unix(7)): the kernel takes it back with the
process that holds it, however that ends.
"""

import os
from pathlib import Path

from softcr_runtime.wire.namespaces import absolute

_LOCK = "softcr/"
_SOCKETS = Path("/proc/net/unix")


def domain() -> str:
    """The ROS domain of this process."""
    return os.environ.get("ROS_DOMAIN_ID") or "0"


def lock_name(domain: str, namespace: str) -> str:
    """The address that the system of a namespace binds."""
    return f"\0{_LOCK}{domain}{absolute(namespace)}"


def running_namespaces(domain: str) -> list[str]:
    """The namespaces, absolute, in which a system of this machine runs in a ROS domain."""
    # the kernel shows the first zero byte as @, and the path is a line's last word
    mark = f"@{_LOCK}{domain}/"
    words = (line.split() for line in _SOCKETS.read_text(errors="replace").splitlines())
    names = {line[-1] for line in words if line}
    return sorted("/" + name.removeprefix(mark) for name in names if name.startswith(mark))
