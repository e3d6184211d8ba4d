"""NVIDIA's machine code as a list of instructions: read from nvdisasm, with its loops.

Nothing here needs a GPU.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from softcr_studies.speed.timing import Skipped

NONE = 7
"""In place of one of the six scoreboards."""

_LABEL = re.compile(r"(\.L_\w+):")
_KERNEL = re.compile(r"\.text\.(\w+):")
_FIRST = re.compile(
    r"\s+/\*([0-9a-f]{4,})\*/\s+\{?\s*(?:@(!?U?P\w+)\s+)?([A-Z]\w*(?:\.\w+)*)\s*([^;]*?)\s*;"
)
_SECOND = re.compile(r"\s+/\* 0x([0-9a-f]{16}) \*/\s*$")
_TARGET = re.compile(r"`\((\.L_\w+)\)")


@dataclass(frozen=True)
class Control:
    """What the compiler tells the scheduler beside an instruction.

    Attributes:
        stall: cycles until the warp may issue its next instruction.
        write: scoreboard that is free again once the result stands in its register; NONE: no one.
        read: scoreboard that is free again once the operands were read; NONE: no one.
        wait: bits of the scoreboards that must be free before it issues.
    """

    stall: int = 1
    write: int = NONE
    read: int = NONE
    wait: int = 0

    @classmethod
    def of(cls, word: int) -> "Control":
        """From the upper 64 of an instruction's 128 bits."""
        return cls(word >> 41 & 15, word >> 46 & 7, word >> 49 & 7, word >> 52 & 63)

    @property
    def word(self) -> int:
        """The upper 64 bits that say so."""
        return self.stall << 41 | self.write << 46 | self.read << 49 | self.wait << 52


@dataclass(frozen=True)
class Instruction:
    """One of a kernel.

    Attributes:
        name: with its modifiers, as "LDS.128".
        operands: as nvdisasm writes them, the target of a branch left out.
        guard: predicate without which it does nothing, as "!P0"; empty: none.
        target: index of the instruction that it goes to; None: it is no branch.
        control: see there.
    """

    name: str
    operands: tuple[str, ...]
    guard: str
    target: int | None
    control: Control

    @property
    def base(self) -> str:
        """Its name without modifiers."""
        return self.name.partition(".")[0]

    @property
    def in_double_precision(self) -> bool:
        """Whether it computes with doubles."""
        return re.fullmatch(r"D(ADD|MUL|FMA|SETP|MNMX|MMA)", self.base) is not None


def disassembler() -> str:
    """Path of nvdisasm: of the wheel of this environment, or on PATH.

    Raises:
        Skipped: there is none.
    """
    beside = Path(sys.prefix) / "lib"
    found = [*beside.glob("python3*/site-packages/nvidia/cu13/bin/nvdisasm")]
    tool = str(found[0]) if found else shutil.which("nvdisasm")
    if tool is None:
        raise Skipped("nvdisasm is not here (make setup-cuda)")
    return tool


def disassembled(cubin: bytes) -> dict[str, list[Instruction]]:
    """Kernel -> its instructions in the order of their addresses.

    Raises:
        Skipped: there is no nvdisasm.
    """
    tool = disassembler()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [tool, "-c", "-hex", file.name]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return parsed(text)


def parsed(text: str) -> dict[str, list[Instruction]]:
    """Kernel -> its instructions, of what `nvdisasm -c -hex` writes."""
    kernels: dict[str, list[Instruction]] = {}
    lines: list[tuple[str, tuple[str, ...], str, str, Control]] = []
    labels: dict[str, int] = {}
    kernel = ""

    def finish() -> None:
        if kernel:
            kernels[kernel] = [
                Instruction(name, operands, guard, labels[to] if to else None, control)
                for name, operands, guard, to, control in lines
            ]
        lines.clear()
        labels.clear()

    for line in text.splitlines():
        if begins := _KERNEL.match(line):
            finish()
            kernel = begins.group(1)
        elif label := _LABEL.match(line):
            labels[label.group(1)] = len(lines)
        elif first := _FIRST.match(line):
            _, guard, name, rest = first.groups()
            target = _TARGET.search(rest)
            operands = tuple(
                each for each in map(str.strip, rest.split(",")) if each and "`" not in each
            )
            to = target.group(1) if target and re.match(r"(BRA|CALL|JMP)\b", name) else ""
            lines.append((name, operands, guard or "", to, Control()))
        elif lines and (second := _SECOND.match(line)):
            lines[-1] = (*lines[-1][:4], Control.of(int(second.group(1), 16)))
    finish()
    return kernels


def successors(program: Sequence[Instruction], index: int) -> list[int]:
    """Where the program may go on after an instruction.

    A call that is not counted, which the compiler uses as a jump, does not return; others do.
    """
    here = program[index]
    following = [index + 1] if index + 1 < len(program) else []
    if here.base == "EXIT" or here.base == "RET":
        return following if here.guard else []
    if here.target is None or (here.base == "CALL" and "NOINC" not in here.name):
        return following
    always = not here.guard and not here.operands
    return [here.target] if always else [*following, here.target]


def loop_depths(program: Sequence[Instruction]) -> list[int | None]:
    """Of each instruction, in how many loops it stands; None: only a call leads there.

    A loop is what a back edge of a depth-first walk closes: its head, and all that leads to the
    edge without passing the head. Back edges to one head are one loop.
    """
    before: list[list[int]] = [[] for _ in program]
    ends: dict[int, list[int]] = {}
    state = [0] * len(program)  # 1 on the path, 2 done
    walk = [(0, iter(successors(program, 0)))]
    state[0] = 1
    while walk:
        here, following = walk[-1]
        for there in following:
            before[there].append(here)
            if state[there] == 1:
                ends.setdefault(there, []).append(here)
            elif state[there] == 0:
                state[there] = 1
                walk.append((there, iter(successors(program, there))))
                break
        else:
            state[here] = 2
            walk.pop()
    depths: list[int | None] = [0 if each else None for each in state]
    for head, tails in ends.items():
        members, todo = {head}, list(tails)
        while todo:
            if (here := todo.pop()) not in members:
                members.add(here)
                todo += before[here]
        for member in members:
            depths[member] = (depths[member] or 0) + 1
    return depths
