"""README and documentation: every block runs or is checked, every link and message is there."""

import ast
import importlib
import os
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import docs_commands
import pytest
from docs_blocks import DOCS, ROOT, Block, all_blocks, blocks, pages
from docs_output import WITHIN, problem_of_output

KINDS = {
    ("python", "run"), ("python", "file"), ("shell", "run"), ("shell", "slow"), ("shell", "check"),
    ("text", "output"), ("text", "file"),
}  # fmt: skip
REASONED = {"check"}
BLOCKS = all_blocks()
KNOWN = [block for block in BLOCKS if (block.language, block.kind) in KINDS]
CHECKED = [(block, words) for block in KNOWN for words in block.commands()]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_each_block_says_how_it_is_tested(block):
    assert (block.language, block.kind) in KINDS, f"{block}: no kind, or none that is known"
    if block.kind == "output":
        assert block.runs, f"{block}: no block above it that is run"
        assert not block.argument or block.within, f"{block}: {block.argument}"
    else:
        assert bool(block.argument) == (block.kind in REASONED | {"file"}), f"{block}: reason, name"


@pytest.mark.parametrize(
    ("block", "words"), CHECKED, ids=[f"{block} {' '.join(words)}" for block, words in CHECKED]
)
def test_each_shell_line_is_one_that_the_command_line_takes(block, words, readers, monkeypatch):
    monkeypatch.chdir(readers)
    assert docs_commands.problem_of(words) is None


MADE = ("eight.npz", "statics.csv", "motion.csv", "my_station.yaml", "my_calibration.yaml")


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    """A folder with what a reader of all pages has made."""
    folder = tmp_path_factory.mktemp("reader")
    workplace(folder)
    for block in BLOCKS:
        if (block.language, block.kind) == ("python", "file"):
            (folder / block.argument).write_text(block.code)
    for name in MADE:
        (folder / name).touch()
    (folder / "my_robot.yaml").symlink_to(ROOT / "examples/upright_four_chambers.yaml")
    (folder / "learned.yaml").symlink_to(ROOT / "config/robots/pcs_two_segments.yaml")
    return folder


# --- running them -------------------------------------------------------------------------------


def workplace(folder: Path) -> dict[str, str]:
    """A folder as a reader's, with the repository's examples; returns the environment."""
    for name in ("examples", "config", "docs"):
        (folder / name).symlink_to(ROOT / name)
    programs = folder / "bin"
    programs.mkdir()
    for name, words in {"softcr": "-m softcr_tools.cli", "python": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}


def walk(page: Path, folder: Path, shell_kinds: set[str]) -> None:
    """Run a page's blocks in order, as a reader would."""
    environment, names = workplace(folder), {"__name__": "__page__"}
    printed: dict[Block, str] = {}
    for block in blocks(page):
        if block.kind == "output" and block.runs in printed:
            problem = problem_of_output(block.code, printed[block.runs], block.within or WITHIN)
            assert problem is None, f"{block}: {problem}"
        elif (block.language, block.kind) == ("python", "run"):
            with redirect_stdout(StringIO()) as stdout:
                exec(compile(block.code, str(block), "exec"), names)
            printed[block] = stdout.getvalue()
        elif (block.language, block.kind) == ("python", "file"):
            (folder / block.argument).write_text(block.code)
            runpy.run_path(str(folder / block.argument), run_name="of_the_docs")
        elif block.language == "shell" and block.kind in shell_kinds:
            for line in block.code.splitlines():
                ran = subprocess.run(
                    ["bash", "-c", line], cwd=folder, env=environment, capture_output=True,
                    text=True, timeout=600,
                )  # fmt: skip
                assert ran.returncode == 0, f"{block}: {line}\n{ran.stdout}{ran.stderr}"
                printed[block] = printed.get(block, "") + ran.stdout + ran.stderr


def with_blocks(*kinds, without=()):
    """Pages that have a block of one of these kinds, and none of others."""
    kinds_of = {page: {block.kind for block in blocks(page)} for page in pages()}
    found = [page for page, of in kinds_of.items() if of & {*kinds} and not of & {*without}]
    ids = [str(page.relative_to(ROOT)) for page in found]
    marks = [[pytest.mark.papers] * page.is_relative_to(DOCS / "papers") for page in found]
    rows = zip(found, ids, marks, strict=True)
    return {"argvalues": [pytest.param(page, id=name, marks=each) for page, name, each in rows]}


# the others run them in the second tier, before blocks that take longer
@pytest.mark.parametrize("page", **with_blocks("run", "file", without=("slow",)))
def test_the_quick_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    walk(page, tmp_path, {"run"})


@pytest.mark.later
@pytest.mark.parametrize("page", **with_blocks("slow"))
def test_all_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    walk(page, tmp_path, {"run", "slow"})


def test_an_output_is_compared_with_a_tolerance():
    shown, same = "tip 0.45 mm of 841\n", "first\ntip  0.4495 mm  of 841 the rest\nlast"
    assert problem_of_output(shown, same, 0.01) is None
    for other in ("tip 0.50 mm of 841", "tip 0.45 mm of 842", "tips 0.45 mm of 841", ""):
        assert problem_of_output(shown, other, 0.01) is not None, other


# --- links, messages, form ----------------------------------------------------------------------

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_INCLUDED = re.compile(r"^ *```\{(?:literalinclude|include|image)\} (\S+)", re.MULTILINE)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in [*_LINK.findall(text), *_INCLUDED.findall(text)]:
        if "://" in target:
            assert re.fullmatch(r"https://[\w.-]+\.\w+(/[\w./#?=&%~+-]*)?", target), target
        elif not target.startswith("#") and "_generated" not in target:
            path = page.parent / target.partition("#")[0]
            assert path.resolve() in pages_of_results() or path.exists(), target


@cache
def pages_of_results() -> set[Path]:
    """Those that the documentation's build makes from the tables."""
    folder = DOCS / "results"
    groups = {table.parents[1].name for table in folder.glob("tables/*/*/table.json")}
    return {folder / f"{name}.md" for name in {"index", *groups}}


def test_the_pages_of_results_are_made_from_the_tables(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(DOCS)
    results = importlib.import_module("generate.results")
    for table in (DOCS / "results").glob("tables/*/*/table.json"):
        copy = tmp_path / table.relative_to(DOCS / "results")
        copy.parent.mkdir(parents=True)
        copy.write_bytes(table.read_bytes())
    (tmp_path / "gone.md").write_text("of a group without a table")
    made = results.write_results(tmp_path)
    assert sorted(path.name for path in pages_of_results()) == made
    assert sorted(path.name for path in tmp_path.glob("*.md")) == made
    assert not [name for name in made if ".png" in (tmp_path / name).read_text()]


@cache
def said_by_the_code() -> list[str]:
    """Every text of the code; a value that is filled in is a form feed."""
    found = []
    for path in ROOT.glob("softcr_*/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = (str(p.value) if isinstance(p, ast.Constant) else "\f" for p in node.values)
                found.append("".join(parts))
    return found


def messages() -> list[str]:
    """First column of the tables of symptoms on the troubleshooting page."""
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    tables = [part for part in page.split("\n\n") if part.startswith("| symptom |")]
    cells = [line.split("|")[1] for table in tables for line in table.splitlines()]
    return [each for cell in cells for each in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("message", messages())
def test_each_message_of_the_troubleshooting_page_is_the_code_s(message):
    parts = [re.escape(part.strip()) for part in message.split("…") if part.strip(" …:;.,")]
    pattern = re.compile(r".*".join(parts), re.DOTALL)
    assert any(pattern.search(text) for text in said_by_the_code())


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 120


def test_the_pictures_are_few_and_small():
    command = ["git", "ls-files", "*.png", "*.gif", "*.jpg", "*.svg"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    assert sum((ROOT / name).stat().st_size for name in listed.stdout.splitlines()) < 3e6


def test_every_service_of_ours_is_on_the_page_of_who_may_call_it():
    page = (DOCS / "reference/access.md").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("softcr_*/**/*.py"))
    offered = set(re.findall(r'create_service\(\w+, "~/(\w+)"', code))
    for actions in re.findall(r"^    actions = \((.*)\)$", code, re.MULTILINE):
        offered |= set(re.findall(r'"(\w+)"', actions))
    assert {"vent", "enable", "reset", "go"} <= offered
    assert [name for name in sorted(offered) if f"/{name}`" not in page] == []


def test_every_node_that_can_be_started_has_its_place_in_the_reference(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    nodes = importlib.import_module("generate.nodes")
    assert {page.name for page in nodes.all_nodes()} == set(nodes.NODES)


def test_a_page_that_cannot_be_generated_is_named(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(DOCS)
    generate = importlib.import_module("generate")
    broken = {"topics.md": lambda: interfaces._unit("torsion")}
    interfaces = generate.interfaces
    monkeypatch.setattr(interfaces, "pages", lambda: broken)
    with pytest.raises(generate.PageError, match=r"topics\.md .*'torsion'"):
        generate.write_all(tmp_path)


def test_the_page_of_the_architecture_names_what_is_there(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    path = importlib.import_module("generate.sample_path")
    assert [name for name in path.FILES if not (ROOT / name).is_file()] == []
    page = (DOCS / "explanation/architecture.md").read_text(encoding="utf-8")
    rooms = {each.name for each in ROOT.glob("softcr*/") if (each / "__init__.py").is_file()}
    rows = page.split("| package | contents |")[1].split("\n\n")[0].splitlines()
    named = "".join(row.split("|")[1] for row in rows if row)
    assert set(re.findall(r"`(softcr\w*)`", named)) == rooms
    files = re.findall(r"`(softcr_\w+/[\w/]+(?:\.py|/))`", page)
    assert [name for name in files if not (ROOT / name).exists()] == []
