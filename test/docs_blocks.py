"""The code blocks of README and documentation, and how each says that it is tested.

The line above a block is `<!-- block: LANGUAGE KIND -->`, see docs/contributing.md. Blocks that are
directives of MyST (`{toctree}`) have none.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
UNREAD = ("_generated", "results")  # made by programs
RUN = ("run", "slow")
_KIND = re.compile(r"<!-- block: (.*) -->")
_FENCE = re.compile(r"^( *)(`{3,})(.*)$")


@dataclass(frozen=True)
class Block:
    """One code block.

    Attributes:
        page: relative to the repository.
        line: of its fence, from 1.
        language: behind the fence.
        kind: first words of its comment, without the language; empty without a comment.
        argument: what follows them: a reason, or a file's name.
        code: its lines.
        runs: of an output, the block whose output it is: the last one above it that is run.
    """

    page: str
    line: int
    language: str
    kind: str
    argument: str
    code: str
    runs: "Block | None" = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def within(self) -> float | None:
        """Relative tolerance of the numbers of an output, where it names one: `within 10 %`."""
        said = re.fullmatch(r"within (\d+) %", self.argument)
        return int(said[1]) / 100 if said else None

    def commands(self) -> list[list[str]]:
        """Words of every line of a shell block; comments and empty lines left out."""
        if self.language != "shell":
            return []
        lines = self.code.replace("\\\n", " ").splitlines()
        split = (shlex.split(line, comments=True) for line in lines)
        return [words for words in split if words]


def pages() -> list[Path]:
    """Every page that people write."""
    found = (path for path in sorted(DOCS.rglob("*.md")))
    kept = [path for path in found if not set(path.relative_to(DOCS).parts) & set(UNREAD)]
    return [ROOT / "README.md", *kept]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order; directives left out."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found, number = [], 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if fence is None:
            number += 1
            continue
        indent, ticks, language = fence.groups()
        end = number + 1
        while lines[end].strip() != ticks:
            end += 1
        inner = [line.removeprefix(indent) for line in lines[number + 1 : end]]
        if not language.startswith("{"):
            name = str(page.relative_to(ROOT))
            kind, argument = _kind_of(lines[number - 1] if number else "", language)
            runs = [each for each in found if each.kind in RUN] if kind == "output" else []
            code, above = "\n".join(inner) + "\n", runs[-1] if runs else None
            found.append(Block(name, number + 1, language, kind, argument, code, above))
        number = end + 1
    return found


def _kind_of(above: str, language: str) -> tuple[str, str]:
    said = _KIND.search(above)
    words = said[1].split() if said else []
    if not words or words[0] != language:
        return "", ""
    kind = words[1].rstrip(":") if len(words) > 1 else ""
    return kind, " ".join(words[2:])


def all_blocks() -> list[Block]:
    """Of every page."""
    return [block for page in pages() for block in blocks(page)]
