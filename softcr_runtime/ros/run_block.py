"""`python -m softcr_runtime.ros.run_block PACKAGE.MODULE:CLASS [NAME] --ros-args ...`: a block as a
process with one ROS node."""

import sys
from collections.abc import Sequence

from softcr_models.errors import UserError
from softcr_models.plugins import load_class
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.ros.block_node import block_node_class
from softcr_runtime.ros.process import leave, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the block that the first argument names; returns the exit code."""
    words = list(sys.argv if arguments is None else arguments)
    program, named, *rest = words if len(words) > 1 else [*words, ""]
    name = rest.pop(0) if rest and not rest[0].startswith("-") else ""
    try:
        block = load_class(named, "block", BlockBase)
        return run_block(block, [program, *rest], name)
    except UserError as error:
        print(f"{name or named or 'block'}: error: {error}", file=sys.stderr)
        return 2


def run_block(block: type[BlockBase], arguments: Sequence[str], name: str = "") -> int:
    """Run a block as a node under its own name, or under another; see `process.run`."""
    return run(block_node_class(block, name), list(arguments))


if __name__ == "__main__":
    leave(main())
