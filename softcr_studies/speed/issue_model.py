"""How long one warp takes for a kernel, estimated from its machine code alone.

The model is that of a warp that has a scheduler for itself. Instructions issue in order. Each waits
as many cycles after the one before as the compiler says in that one's stall count, and until the
scoreboards are free that the compiler says it waits for. So latencies of a fixed length need no
assumption: the compiler has put them into the stall counts. Those of memory, shuffles and special
functions are in `LATENCIES`. Shared memory moves 128 bytes a cycle, one access after the other.

What is walked is what the kernel does, not what it may do: integers, predicates and addresses that
follow from the launch's constants and the lane are computed, 32 lanes at once, and lanes that part
at a branch are walked side by side, the lower address first, until they meet. Of a branch that
depends on floating-point numbers or on memory it is assumed that it is not taken; how many there
were is said.

It is an estimate. It knows nothing of the time to fetch instructions, of the fetch after a taken
branch, of bank conflicts, of registers' ports, and of the launch.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from softcr_studies.speed.machine_code import NONE, Instruction

WARP = 32

_MEASURED = "measured, GH200: latency of github.com/markdewing/AI_kernels"
LATENCIES: Mapping[str, tuple[int, str]] = {
    "LDS": (29, "assumed, of published 23 to 33 cycles"),
    "LDG.E.CONSTANT": (40, f"{_MEASURED}, L1: tables, read again and again"),
    "LDG": (281, f"{_MEASURED}, L2: states, inputs and parameters"),
    "SHFL": (24, "assumed, as shared memory with less addressing"),
    "MUFU": (18, "assumed"),
    "LDC": (29, "assumed, as shared memory"),
    "ULDC": (29, "assumed, as shared memory"),
    "S2R": (20, "assumed"),
    "S2UR": (20, "assumed"),
    "D": (18, "assumed, doubles"),
    "F2F": (18, "assumed"),
    "": (12, "assumed, everything else that has a scoreboard"),
}
"""Beginning of a name -> cycles from issue to result, and where that is from; the longest that
fits."""

READ = 10
"""Cycles until the operands of such an instruction were read: assumed."""

BYTES_PER_CYCLE = 128
"""Of shared memory."""

_COMPARE: Mapping[str, Callable[..., NDArray[np.bool_]]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
    "GE": np.greater_equal,
}  # fmt: skip
_COMBINE = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}
_UNIFORM = re.compile(r"U(?=(MOV|IADD3|IMAD|ISETP|SEL|LEA|LOP3|PLOP3|SHF|LDC)$)")
_REGISTER = re.compile(r"U?R\d+$")
_PREDICATE = re.compile(r"!?U?P(\d|T)$")
_CONSTANT = re.compile(r"c\[0x0\]\[(?:(U?R\d+)\+?)?(-?0x[0-9a-f]+)?\]$")
_MASK = 0xFFFFFFFF
_ZEROS = np.zeros(WARP, np.int64)


@dataclass(frozen=True)
class Lanes:
    """A number in each lane, where it is known: (32,), (32,)."""

    value: NDArray[np.int64]
    known: NDArray[np.bool_]

    @classmethod
    def all(cls, value: object, known: bool = True) -> "Lanes":
        """The same in all lanes, or one for each."""
        return cls(np.broadcast_to(np.asarray(value, np.int64), WARP), np.full(WARP, known))


UNKNOWN = Lanes.all(0, False)


def latency_of(name: str) -> int:
    """Cycles from an instruction's issue until its result stands in a register."""
    fitting = max((key for key in LATENCIES if name.startswith(key)), key=len)
    return LATENCIES[fitting][0]


def accesses(name: str) -> int:
    """Cycles of the shared memory that an instruction takes."""
    if name[:3] not in ("LDS", "STS"):
        return 0
    width = 16 if name.endswith("128") else 8 if name.endswith("64") else 4
    return WARP * width // BYTES_PER_CYCLE


@dataclass
class Walk:
    """What one warp has done.

    Attributes:
        cycles: from its first issue to its end.
        instructions: that it has issued.
        guessed: branches of which it was assumed that no lane takes them.
        counts: how often each instruction was issued, by index.
        waited: cycles beyond the stall counts, by the instruction that was waited for.
    """

    cycles: int = 0
    instructions: int = 0
    guessed: int = 0
    counts: Counter[int] = field(default_factory=Counter)
    waited: Counter[str] = field(default_factory=Counter)


class _State:
    """Registers and predicates as far as branches depend on them."""

    def __init__(self, program: Sequence[Instruction], constants: Mapping[int, int]) -> None:
        self._constants = constants
        self._held: dict[str, Lanes] = {}
        self.relevant = _relevant(program)

    def predicate(self, text: str) -> Lanes:
        """Of an operand or a guard."""
        name = text.lstrip("!")
        found = Lanes.all(1) if name in ("PT", "UPT") else self._held.get(name, UNKNOWN)
        return Lanes(1 - found.value, found.known) if text.startswith("!") else found

    def _number(self, text: str) -> Lanes:
        """Of an operand, modulo 2^32."""
        text = text.removesuffix(".reuse")
        if text in ("RZ", "URZ", "SRZ"):
            return Lanes.all(0)
        if text == "SR_TID.X":
            return Lanes.all(np.arange(WARP))
        if text == "SR_CTAID.X":
            return Lanes.all(0)
        if re.fullmatch(r"-?0x[0-9a-f]+", text):
            return Lanes.all(int(text, 16) & _MASK)
        if text.startswith("-"):
            found = self._number(text[1:])
            return Lanes(-found.value & _MASK, found.known)
        if place := _CONSTANT.match(text):
            register, offset = place.groups()
            base = self._held.get(register, UNKNOWN) if register else Lanes.all(0)
            at = int(base.value[0]) + int(offset or "0", 16)
            return Lanes.all(self._constants.get(at, 0), at in self._constants and base.known[0])
        return self._held.get(text, UNKNOWN) if _REGISTER.match(text) else UNKNOWN

    def execute(self, one: Instruction, active: NDArray[np.bool_]) -> None:
        """What an instruction leaves in the registers of the active lanes."""
        results, found = _results(one), self._computed(one)
        guard = self.predicate(one.guard) if one.guard else Lanes.all(1)
        for name in results:
            old, new = self._held.get(name, UNKNOWN), found.get(name, UNKNOWN)
            writes = active & (guard.value != 0)
            value = np.where(writes, new.value, old.value)
            known = np.where(writes, new.known, old.known) & (guard.known | ~active)
            self._held[name] = Lanes(value, known)

    def _computed(self, one: Instruction) -> dict[str, Lanes]:
        """Results of an instruction, as far as they are known."""
        base = _UNIFORM.sub("", one.base)
        modifiers, operands = one.name.split(".")[1:], list(one.operands)
        number, predicate = self._number, self.predicate
        if base == "ISETP":
            a, b, other = number(operands[2]), number(operands[3]), predicate(operands[4])
            x, y = a.value, b.value
            if "U32" not in modifiers:
                x, y = _signed(x), _signed(y)
            combine = next(_COMBINE[each] for each in modifiers if each in _COMBINE)
            value, lower = _COMPARE[modifiers[0]](x, y), other
            if "EX" in modifiers:  # upper halves, after the lower ones
                lower = predicate(operands[5])
                value = np.where(x == y, lower.value != 0, value)
            value = combine(value, other.value != 0)
            return {operands[0]: _lanes(value, a, b, other, lower)}
        if base == "PLOP3":
            inputs = [predicate(each) for each in operands[2:5]]
            return {operands[0]: _looked_up(inputs, int(operands[5], 16), 1)}
        if base == "LOP3":
            flag = operands.pop(0) if _PREDICATE.match(operands[0]) else "PT"
            inputs = [number(each) for each in operands[1:4]]
            found = _looked_up(inputs, int(operands[4], 16), 32)
            return {operands[0]: found, flag: _lanes(found.value != 0, found)}
        if base == "VOTE" and _PREDICATE.match(operands[0]):
            asked = predicate(operands[-1])
            return {operands[0]: Lanes.all(asked.value.any(), bool(asked.known.all()))}
        if base == "P2R":
            chosen = int(operands[-1], 16)
            bits = [predicate(f"P{k}") for k in range(7) if chosen >> k & 1]
            places = [k for k in range(7) if chosen >> k & 1]
            packed = sum((bit.value << k for k, bit in zip(places, bits, strict=True)), _ZEROS)
            return {operands[0]: _lanes(packed, *bits)}
        if not operands or any(map(_PREDICATE.match, operands[1:2])):
            return {}  # with a carry
        result = operands[0]
        if base in ("MOV", "R2UR", "S2R", "S2UR", "LDC") and "64" not in modifiers:
            return {result: number(operands[1])}
        if base == "CS2R":
            return {name: number(operands[1]) for name in _results(one)}
        if base == "HFMA2" and operands[1:3] == ["-RZ", "RZ"]:
            halves = np.array([float(each) for each in operands[4:2:-1]], np.float16)
            return {result: Lanes.all(int(halves.view(np.uint32)[0]))}
        if base == "SEL":
            a, b, which = number(operands[1]), number(operands[2]), predicate(operands[3])
            return {result: _lanes(np.where(which.value, a.value, b.value), a, b, which)}
        given = [number(each) for each in operands[1:4]]
        if base == "IADD3" and "X" not in modifiers:
            return {result: _lanes(sum((each.value for each in given), _ZEROS), *given)}
        if base == "IMAD" and not {"WIDE", "HI", "X"} & {*modifiers}:
            a, b, c = given
            return {result: _lanes(a.value * b.value + c.value, *given)}
        if base == "LEA" and not modifiers:
            a, b, shift = given
            return {result: _lanes((a.value << shift.value) + b.value, *given)}
        if base == "SHF" and modifiers in (["R", "U64"], ["R", "U32", "HI"], ["L", "U32"]):
            a, shift, high = given
            if modifiers[0] == "L":
                return {result: _lanes(a.value << shift.value, a, shift)}
            if "U32" in modifiers:
                return {result: _lanes(high.value >> shift.value, high, shift)}
            whole = high.value.astype(np.uint64) << np.uint64(32) | a.value.astype(np.uint64)
            moved = whole >> (shift.value % 64).astype(np.uint64) & np.uint64(_MASK)
            return {result: _lanes(moved, *given)}
        return {}


def walk(program: Sequence[Instruction], constants: Mapping[int, int]) -> Walk:
    """One warp through a kernel.

    Args:
        program: in the order of addresses.
        constants: of bank 0: offset [bytes] -> 32 bits; what is not in it is unknown.

    Raises:
        ValueError: there are calls in it.
    """
    state, done = _State(program, constants), Walk()
    active, index = np.ones(WARP, dtype=bool), 0
    waiting: dict[int, NDArray[np.bool_]] = {}  # lanes elsewhere, by the index where they are
    time, free, memory = 0, [0] * 6, 0
    holder = [""] * 6
    while True:
        if waiting and (lowest := min(waiting)) <= index:
            others = waiting.pop(lowest)
            if lowest == index:
                active = active | others
            else:
                waiting[index] = active
                active, index = others, lowest
        one = program[index]
        control = one.control
        for k in range(6):
            if control.wait >> k & 1 and free[k] > time:
                done.waited[holder[k]] += free[k] - time
                time = free[k]
        done.instructions += 1
        done.counts[index] += 1
        begins = time
        if busy := accesses(one.name):
            begins = max(time, memory)
            memory = begins + busy
        if control.write != NONE:
            ready = begins + max(busy - 1, 0) + latency_of(one.name)
            free[control.write] = max(free[control.write], ready)
            holder[control.write] = one.base
        if control.read != NONE:
            free[control.read] = max(free[control.read], begins + READ)
            holder[control.read] = one.base
        time += max(control.stall, 1)
        index += 1
        if one.base in ("CALL", "RET", "JMP", "BRX"):
            raise ValueError(f"the issue model knows no {one.base}")
        if one.base == "EXIT" or one.target is not None:
            leaving = _leaving(one, state, active, done)
            if one.target is not None and leaving.any():
                met = waiting.get(one.target)
                waiting[one.target] = leaving if met is None else met | leaving
            active = active & ~leaving
            if not active.any():
                if not waiting:
                    break
                index = min(waiting)
                active = waiting.pop(index)
        elif state.relevant[index - 1]:
            state.execute(one, active)
    done.cycles = time
    return done


def _leaving(
    one: Instruction, state: _State, active: NDArray[np.bool_], done: Walk
) -> NDArray[np.bool_]:
    """Lanes that take a branch, or end."""
    if ".DIV" in one.name:
        return np.zeros(WARP, dtype=bool)
    asked = [one.guard] if one.guard else []
    asked += [each for each in one.operands if _PREDICATE.match(each)]
    taken = active
    for each in asked:
        found = state.predicate(each)
        if not found.known[active].all():
            done.guessed += 1
        taken = taken & found.known & (found.value != 0)
    return taken


def _results(one: Instruction) -> tuple[str, ...]:
    """Registers and predicates that an instruction writes."""
    if one.base[:2] in ("ST", "BS", "BR") or one.base in ("EXIT", "NOP", "RED", "MEMBAR"):
        return ()
    if one.base.endswith("SETP") or one.base.endswith("PLOP3"):
        given = list(one.operands[:2])
    elif one.operands and _PREDICATE.match(one.operands[0]):
        given = list(one.operands[: 1 if one.base == "VOTE" else 2])
    else:
        given = list(one.operands[:1])
        for text in one.operands[1:3]:  # carries
            if not _PREDICATE.match(text):
                break
            given.append(text)
    names: list[str] = []
    for text in given:
        if register := re.fullmatch(r"(U?R)(\d+)", text):
            first = int(register.group(2))
            names += [f"{register.group(1)}{first + k}" for k in range(_width(one))]
        elif _PREDICATE.match(text) and text not in ("PT", "UPT"):
            names.append(text)
    return tuple(names)


def _width(one: Instruction) -> int:
    """Registers of its result."""
    if one.name.endswith(".128"):
        return 4
    wide = re.search(r"\.(64|WIDE)\b", one.name) or one.base == "CS2R" or one.in_double_precision
    return 2 if wide or one.name.startswith("F2F.F64") else 1


def _relevant(program: Sequence[Instruction]) -> list[bool]:
    """Which instructions may have a part in where the program goes."""
    reads = [
        {each for text in (one.guard, *one.operands) for each in re.findall(r"\bU?[RP]\d+", text)}
        | ({f"P{k}" for k in range(7)} if one.base == "P2R" else set())
        for one in program
    ]
    writes = [set(_results(one)) for one in program]
    wanted: set[str] = set()
    for one, names in zip(program, reads, strict=True):
        if one.target is not None or one.base == "EXIT":
            wanted |= names
    while True:
        found = [bool(names & wanted) for names in writes]
        more = wanted.union(*(names for names, is_one in zip(reads, found, strict=True) if is_one))
        if more == wanted:
            return found
        wanted = more


def _signed(value: NDArray[np.int64]) -> NDArray[np.int64]:
    return value - ((value >> 31 & 1) << 32)


def _lanes(value: object, *of: Lanes) -> Lanes:
    """A result, known where all that it is made of is."""
    known = np.ones(WARP, dtype=bool)
    for each in of:
        known = known & each.known
    return Lanes(np.broadcast_to(np.asarray(value, np.int64), WARP) & _MASK, known)


def _looked_up(inputs: Sequence[Lanes], table: int, bits: int) -> Lanes:
    """The function of three bits that a table of eight says, bit by bit."""
    whole, value = (1 << bits) - 1, np.zeros(WARP, np.int64)
    for row in range(8):
        if table >> row & 1:
            met = np.full(WARP, whole)
            for place, each in zip((4, 2, 1), inputs, strict=True):
                met &= each.value if row & place else ~each.value & whole
            value |= met
    return _lanes(value, *inputs)
