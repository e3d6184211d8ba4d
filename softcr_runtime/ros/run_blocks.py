"""`python -m softcr_runtime.ros.run_blocks RUNS NAME [RUNS NAME ...] --ros-args ...`: several
nodes in one process.

RUNS is `package.module:Class` of a block, or `package.module` of a node of its own, and NAME what
the node is called. The nodes share one DDS participant and one executor; each has its own loop,
parameters, services and diagnostics, and what blocks publish reaches each other as it is.
"""

import inspect
import sys
from collections.abc import Sequence
from importlib import import_module

from softcr_models.errors import UserError
from softcr_models.plugins import load_class
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.ros.block_node import block_node_class
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.ros.process import leave, run_together


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the nodes that the arguments name; returns the exit code."""
    program, *words = list(sys.argv if arguments is None else arguments)
    end = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    named, rest = words[:end], words[end:]
    try:
        if not named or len(named) % 2:
            raise UserError(f"arguments {' '.join(named)!r}: must be pairs of what runs and a name")
        pairs = zip(named[::2], named[1::2], strict=True)
        return run_together([node_class(runs, name) for runs, name in pairs], [program, *rest])
    except UserError as error:
        print(f"nodes: error: {error}", file=sys.stderr)
        return 2


def node_class(runs: str, name: str) -> type[LoopNode]:
    """The class of a node under a name of its own.

    Args:
        runs: `package.module:Class` of a block, or `package.module` of the one node in it.
        name: of the node.

    Raises:
        UserError: there is no such block or node.
    """
    if ":" in runs:
        return block_node_class(load_class(runs, "block", BlockBase), name)
    try:
        module = import_module(runs)
    except ImportError as error:
        raise UserError(f"node {name}: {runs} cannot be imported: {error}") from None
    found = [
        one
        for _, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, LoopNode) and one.__module__ == runs
    ]
    if len(found) != 1:
        raise UserError(f"node {name}: {runs} holds {len(found)} nodes, must hold one")
    kind = found[0]
    return type(kind.__name__, (kind,), {"__doc__": kind.__doc__, "default_name": name})


if __name__ == "__main__":
    leave(main())
