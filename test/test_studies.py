"""The study frame: cells, seeds, tables, resume, pages, comparison, and users' mistakes."""

import fcntl
import json
import math
import multiprocessing
import time
from concurrent.futures import TimeoutError, as_completed
from dataclasses import dataclass, replace

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress

from softcr_models.errors import UserError
from softcr_studies.frame import catalogue, command, workers
from softcr_studies.frame.catalogue import load_study, named_studies, study_files
from softcr_studies.frame.cell import Cell, StudySettings
from softcr_studies.frame.claims import Claim, claims_table
from softcr_studies.frame.code_version import code_version, sources
from softcr_studies.frame.compare import compare, print_comparison, table_of
from softcr_studies.frame.compare import words as told
from softcr_studies.frame.page import write_pages
from softcr_studies.frame.results import Results, Store
from softcr_studies.frame.runner import Runner, _Bar, check_needs
from softcr_studies.frame.study import Metric, Study
from softcr_studies.frame.table import Row, read_table, write_table
from softcr_studies.frame.workers import LocalWorkers

STUDY_FILE = """
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softcr_studies.frame.study import Metric, Must, Published, Seeds, Study, StudySettings


@dataclass(frozen=True)
class Case:
    name: str
    error: float


class Settings(StudySettings):
    seeds: Seeds = 3
    gain: float = 1.0


def run(cell):
    with (Path(__file__).parent / "ran.txt").open("a") as file:
        file.write(f"{cell.case_name} {cell.method} {cell.seed}\\n")
    if (Path(__file__).parent / "fail").exists() and cell.seed == 2:
        raise ArithmeticError("the plant diverged")
    noise = cell.random("plant").normal()
    error = cell.settings.gain * cell.case.error * (1.0 + 0.1 * noise)
    return {"error": error, "seed": cell.stream("plant")} | (
        {"time": 2.0} if cell.method == "slow" else {}
    )


def draw(results, directory):
    (directory / "figure.png").write_bytes(b"png")


STUDY = Study(
    name="own/errors", source="A paper, Sec. 2", summary="how large the errors are",
    run=run, cases=(Case("small", 1.0), Case("large", 10.0)), methods=("slow", "fast"),
    settings=Settings, draw=draw,
    metrics=(Metric("error", "mm", "error"), Metric("time", "s", "time", timing=True)),
    published=(Published("error", 2.0, "simulation", "small"), Published("error", 4.0, "bench")),
    musts=(Must("error", 3.0, 2.0, "small"), Must("time", 1.0, at_least=True)),
    exact="The plant is the model.", about={"rate_hz": 70.0},
)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "errors.py"
    path.write_text(STUDY_FILE)
    yield path
    catalogue.load_study.cache_clear()


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path / "results", LocalWorkers(1), console=Console(quiet=True))


def ran(file):
    return (file.parent / "ran.txt").read_text().splitlines()


def test_a_study_of_a_file_gives_its_table(file, runner):
    study = load_study(str(file))
    directory = runner.run(str(file), study.settings())
    about, rows = read_table(directory / "table.json")
    assert directory == (runner.results / "studies/own/errors/latest").resolve()
    assert (about["experiment"], about["seeds"], about["gain"]) == ("own/errors", 3, 1.0)
    assert about["rate_hz"] == 70.0
    assert about["machine"]["cores"] >= 1
    each = ("slow", "error"), ("slow", "time"), ("fast", "error")
    assert [row.key for row in rows] == [(case, *of) for case in ("small", "large") for of in each]
    small, time = rows[:2]
    noise = [Cell("", "", seed, None).random("plant").normal() for seed in range(3)]
    errors = 1.0 + 0.1 * np.array(noise)
    assert (small.mean, small.sd) == (pytest.approx(errors.mean()), pytest.approx(errors.std()))
    assert small.published == {"simulation": 2.0, "bench": 4.0}
    assert rows[3].published == {"bench": 4.0}
    assert (small.must, small.goal, small.mark) == (3.0, 2.0, "goal")
    assert (time.mean, time.timing, time.at_least, time.mark) == (2.0, True, True, "goal")
    assert rows[2].mean == small.mean, "methods meet the same noise"
    written = json.loads((directory / "table.json").read_text())["rows"][0]
    assert (written["paper"], written["must"], written["mark"]) == (2.0, 3.0, "goal")
    assert (directory / "figure.png").exists()
    assert "The plant is the model." in (directory / "page.md").read_text()


def test_streams_of_users_and_seeds_are_independent():
    cells = [Cell("case", "method", seed, None) for seed in range(20)]
    seeds = [cell.stream(user) for cell in cells for user in ("plant", "controller")]
    assert len(set(seeds)) == len(seeds)
    other = Cell("another case", "another method", 3, None)
    assert other.stream("plant") == cells[3].stream("plant")
    draws = [cells[0].random(user).normal(size=2000) for user in ("plant", "controller")]
    assert abs(np.corrcoef(draws)[0, 1]) < 0.1


def rows_of(directory):
    return read_table(directory / "table.json")[1]


def test_other_settings_or_another_code_are_run_anew_more_seeds_are_added(file, runner):
    study = load_study(str(file))
    cell, store = Cell("case", "m", 0, study.settings()), Store(file.parent / "store", "s", "1")
    store.add(cell, {"error": 1.0})
    assert cell in store
    assert replace(cell, settings=study.settings(seeds=9)) in store
    assert replace(cell, settings=study.settings(gain=2.0)) not in store
    assert replace(cell, seed=1) not in store
    assert cell not in Store(file.parent / "store", "s", "2")
    assert replace(cell, bag=file.parent / "bag") not in store, "its bag was not written"


def test_several_studies_go_on_where_they_were_stopped(file, runner):
    """The first has finished when the second fails: the same command runs only what is missing of
    the second, and ends in the table of one that was not disturbed."""
    second = file.with_name("others.py")
    second.write_text(STUDY_FILE.replace("own/errors", "own/others").replace('"fail"', '"fall"'))
    tasks = [(str(each), load_study(str(each)).settings(seeds=3)) for each in (file, second)]
    (file.parent / "fall").touch()
    with pytest.raises(UserError, match="own/others, small, slow, seed 2: ArithmeticError"):
        runner.run_all(tasks)
    assert not (runner.results / "studies/own/others/latest").exists()
    (file.parent / "fall").unlink()
    done = ran(file)
    assert len(done) == 12 + 8 + 1
    first, other = runner.run_all(tasks)
    cases, methods = ("small", "large"), ("slow", "fast")
    assert ran(file)[len(done) :] == [f"{c} {m} 2" for c in cases for m in methods]
    assert rows_of(first) == rows_of(other)
    again, _ = runner.run_all(tasks)
    assert len(ran(file)) == len(done) + 4 + 24, "nothing was stopped: all are run"
    assert again != first, "the older run is left"
    assert rows_of(again) == rows_of(first)
    assert len(list((again / "cells").iterdir())) == 12


def test_a_quick_run_ends_in_time_and_says_what_it_left_out(file, monkeypatch):
    """In processes of their own; the time is over when the first cell has ended, and the second
    sleeps for a minute."""
    pause = "    __import__('time').sleep(0.0 if cell.method == 'slow' else 60.0)"
    file.write_text(STUDY_FILE.replace("def run(cell):", f"def run(cell):\n{pause}"))

    def first_alone(futures, left):
        assert 900.0 < left < 1000.0
        yield next(as_completed(futures))
        raise TimeoutError

    monkeypatch.setattr(workers, "as_completed", first_alone)
    others = {each.pid for each in multiprocessing.active_children()}
    ending = LocalWorkers(1, time.monotonic() + 1000.0)
    quick = Runner(file.parent / "results", ending, console=Console(quiet=True))
    directory = quick.run(str(file), load_study(str(file)).settings(seeds=1))
    about, rows = read_table(directory / "table.json")
    assert {row.method for row in rows} == {"slow"}
    assert about["left_out"] == "small, fast; large, slow; large, fast"
    assert not (directory / "figure.png").exists()
    assert "LEFT OUT" in (directory / "page.md").read_text()
    for worker in multiprocessing.active_children():
        if worker.pid not in others:
            worker.join(50.0)
            assert worker.exitcode is not None, "a cell of a minute is stopped"


def test_the_bar_counts_the_cells_of_all_studies():
    """Of 3 and 4 cells; the second study names 2 more of them while it runs."""
    progress = Progress(console=Console(quiet=True))
    bar = _Bar(progress, progress.add_task("", total=7), [3, 4])
    seen = []
    for done, count in ((0, 3), (3, 3), (0, 4), (4, 4), (4, 6), (6, 6)):
        bar.number += bool(seen) and count > 3 and bar.number == 0
        bar.show("a study", done, count)
        seen.append((progress.tasks[0].completed, progress.tasks[0].total))
    assert seen == [(0, 7), (3, 7), (3, 7), (7, 7), (7, 9), (9, 9)]


def test_studies_run_after_those_whose_tables_they_read():
    named = [f"pawlowski2019/{name}" for name in ("table-4-1", "mpc", "learning")]
    assert catalogue.in_order(named_studies(named))[-1] == named[0]
    group = named_studies(["pawlowski2019"])
    assert sorted(catalogue.in_order(group)) == sorted(group)


def test_the_code_of_a_study_is_what_it_imports(tmp_path):
    """Its own modules, those they import, parts and files that it names, and no others."""
    files = study_files()
    mpc = sources(files["pawlowski2019/mpc"])
    assert "softcr_papers.pawlowski2019.lookahead.nlsq" in mpc, "a name of the registry"
    assert "softcr_papers.pawlowski2019.studies.reach" in mpc, "a class that settings name"
    assert "tendon_arm" in mpc, "a robot"
    assert "softcr_papers.pawlowski2019.learning.training" not in mpc
    assert not any(name.startswith("softcr_papers.valadas2024") for name in mpc)
    own = tmp_path / "mine.py"
    own.write_text("from softcr_models.errors import UserError\n")
    assert {"study", "softcr_models.errors"} <= set(sources(own))
    assert "softcr_models.rod.stepper" not in sources(files["dalenberg2024/section-lengths"])
    other, changed = tmp_path / "other.py", tmp_path / "changed.py"
    other.write_text('"""Another one."""\n\n' + own.read_text() + "# said\n")
    changed.write_text(own.read_text() + "X = 'said'\n")
    assert code_version(other) == code_version(own) != code_version(changed)


def test_a_claim_is_reproduced_where_every_row_is_in_its_worst_seed():
    def verdict(rows, **more):
        return Claim("it is small", "own/errors", "error", **more).judged(rows).verdict

    def row(method, values, published=2.0):
        return Row.of("case", method, "error", values, "mm", published={"simulation": published})

    good, spread, bad = row("a", [1.0, 1.5]), row("b", [1.0, 2.5]), row("c", [3.0, 4.0])
    lost = replace(row("d", [1.0]), mean=math.nan)
    assert verdict(None) == "not run"
    assert verdict([good]) == "yes"
    assert verdict([spread]) == verdict([good, bad]) == "partly"
    assert verdict([bad]) == verdict([lost]) == "no"
    assert verdict([good, bad], bound=5.0) == "yes"
    assert verdict([good, bad], methods=("a",)) == "yes"
    assert verdict([good], methods=("a", "z")) == "partly", "a method without a row"
    assert verdict([good, bad], methods=("a",), than="c") == "yes"
    assert verdict([good, bad], methods=("c",), than="a") == "no"
    assert verdict([good], at_least=True) == "no"
    unpublished = replace(row("e", [1.0, 1.5]), published={})
    assert verdict([unpublished]) == "not run"
    assert verdict([unpublished, bad], methods=("e",), published_by="c") == "yes"
    text = claims_table([Claim("it is small", "own/errors", "error", why="because")],
                        {"own/errors": [good, bad]}.get)  # fmt: skip
    assert "| it is small | 2 mm | 1.25 to 3.5 mm | median 1.25 to 3.5, worst 1.5 to 4, 2 seeds " \
        "| partly | 1 of 2 rows in the mean, 1 in the worst seed; because |" in text  # fmt: skip


@pytest.mark.parametrize("group", [*catalogue._declared()])
def test_claims_name_what_the_studies_have(group):
    claims = catalogue.claims_of(group)
    assert claims, "every paper says what it claims"
    for claim in claims:
        study = load_study(claim.study)
        cells = study.cells(study.settings())
        if study.later is None and study.metrics:
            assert {*claim.methods} <= {cell.method for cell in cells}, claim.says
        named = {metric.quantity for metric in study.metrics}
        if study.further_rows is None:
            quantities = (claim.quantity,) if isinstance(claim.quantity, str) else claim.quantity
            assert {*quantities} <= named, claim.says


def test_a_study_is_run_by_one_process_at_a_time(file, runner):
    parent = runner.results / "studies/own/errors"
    parent.mkdir(parents=True)
    with (parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another process runs this study"):
            runner.run(str(file), StudySettings())


def test_results_keep_numbers_texts_and_arrays_and_nothing_else(tmp_path):
    store, cell = Store(tmp_path, "a/b", "1"), Cell("case", "m", 0, StudySettings())
    store.add(cell, {"number": 1.5, "text": "found", "array": np.eye(2), "nan": math.nan})
    found = store[cell]
    assert (found["number"], found["text"]) == (1.5, "found")
    assert math.isnan(found["nan"])
    np.testing.assert_array_equal(found["array"], np.eye(2))
    with pytest.raises(TypeError, match="'odd' is dict"):
        store.add(cell, {"odd": {}})
    with pytest.raises(TypeError, match="has no value"):
        store.add(replace(cell, case=Stage("odd", object())), {})


@dataclass(frozen=True)
class Stage:
    """A case that depends on a result."""

    name: str
    number: float


def test_later_cells_follow_from_results(runner, monkeypatch):
    def later(results):
        best = max(result["square"] for result in results.of("first", "m"))
        return [Cell(Stage("second", best), "m", 0, results.settings)]

    def run_cell(cell):
        return {"square": cell.case.number**2 if cell.case_name == "second" else float(cell.seed)}

    study = Study("own/stages", "", "stages", run_cell, ("first",), ("m",), later=later,
                  metrics=(Metric("square", "-", "square"),))  # fmt: skip
    for module in ("softcr_studies.frame.runner", "softcr_studies.frame.workers"):
        monkeypatch.setattr(f"{module}.load_study", lambda place: study)
        monkeypatch.setattr(f"{module}.file_of", lambda place: study_files()["control/any-model"])
    directory = runner.run("own/stages", StudySettings(seeds=4))
    assert [(row.case, row.mean) for row in rows_of(directory)] == [("first", 1.5), ("second", 9.0)]


def test_a_miss_is_a_miss_and_so_is_what_is_not_a_number():
    def mark(mean, **more):
        return Row("c", "m", "q", mean, 0.0, "mm", 1, **more).mark

    assert [mark(x, must=2.0, goal=1.0) for x in (0.5, 1.5, 2.5)] == ["goal", "pass", "MISS"]
    assert mark(math.nan, must=2.0) == "MISS"
    assert [mark(x, must=2.0, at_least=True) for x in (2.5, 1.5)] == ["goal", "MISS"]
    worse = {"simulation": 1.0, "bench": 9.0}
    assert mark(1.5, must=2.0, published=worse) == "MISS", "worse than the published figure"
    assert mark(0.9, must=2.0, goal=0.5, published=worse) == "pass"
    seeds = Row.of("c", "m", "q", [1.0, 2.5], "mm", must=2.0)
    assert (seeds.median, seeds.worst, seeds.mark) == (1.75, 2.5, "goal")
    assert Row.of("c", "m", "q", [1.0, 2.5], "mm", must=2.0, of_worst=True).mark == "MISS"
    assert Row.of("c", "m", "q", [1.0, 2.5], "%", at_least=True).worst == 1.0
    assert mark(5.0) == ""


def test_pages_hold_every_row_with_published_kinds_apart(tmp_path):
    rows = [Row("a | b", "us", "error", 0.5, 0.1, "mm", 3, {"bench": 2.0}, 1.0, 0.2),
            Row("c", "us", "error", math.nan, 0.0, "mm", 1, {"simulation": 3.0})]  # fmt: skip
    table = tmp_path / "run/table.json"
    table.parent.mkdir()
    machine = {"cores": 2, "processor": "P", "time": "2026-11-21T18:22"}
    machine["load_average_at_start"] = [7.5]
    about = {"experiment": "group/name", "summary": "what it is", "source": "Someone, Sec. 1",
             "exact": "All of it.", "seeds": 3, "machine": machine, "code": "c0de"}  # fmt: skip
    write_table(table, about, rows)
    (table.parent / "error.png").touch()
    page, index = write_pages([table], tmp_path / "pages")
    assert "| [group/name](group.md) | what it is | Someone, Sec. 1 |" in index.read_text()
    text = page.read_text()
    assert page.name == "group.md"
    assert "published, simulation | published, bench | ours" in text
    assert r"| a \| b | us | error |  | 2 | 0.5 | 0.1 | mm | 3 | ≤ 1 | pass |" in text
    assert "| c | us | error | 3 |  |  |  | mm | 1 |  |  |" in text
    assert "(tables/group/name/error.png)" in text
    assert "2026-11-21, P, 2 cores at load 7.5" in text
    assert "Other code than this version of softcr made these tables: `group/name`" in text
    table.unlink()
    assert write_pages([], tmp_path / "pages")[0].read_text() == text, "older tables are kept"
    with pytest.raises(UserError, match="no study has been run"):
        write_pages([], tmp_path / "nothing")


def test_two_runs_are_compared_row_by_row(tmp_path):
    def row(method, mean, sd=0.1, **more):
        return Row("case", method, "error", mean, sd, "mm", 3, must=2.0, **more)

    before = [row("a", 1.0), row("b", 1.0), row("c", 1.0), row("d", 1.0), row("gone", 1.0)]
    after = [row("a", 1.0), row("b", 1.1), row("c", 1.9), row("d", 2.1), row("new", 1.0)]
    pairs = compare(before, after)
    words = {(pair[1] or pair[0]).method: told(*pair) for pair in pairs}
    assert words == {"a": "same", "b": "within spread", "c": "differs", "d": "now MISS",
                     "new": "only after", "gone": "only before"}  # fmt: skip
    paths = []
    for name, rows in (("before", before), ("after", after)):
        (tmp_path / name).mkdir()
        write_table(tmp_path / name / "table.json", {}, rows)
        paths.append(table_of(str(tmp_path / name), tmp_path))
    console = Console(record=True, width=120, quiet=False)
    assert print_comparison(console, (paths[0], paths[1])) == 1
    assert "now MISS" in console.export_text()
    with pytest.raises(UserError, match="run 'nowhere': no table there"):
        table_of("nowhere", tmp_path)


@pytest.mark.parametrize(("content", "said"), [
    ("x = 1", "has no STUDY"),
    ("STUDY = 3", "has no STUDY"),
    ("import nothing_of_that_name", "cannot be read: ModuleNotFoundError"),
    ("def", "cannot be read: SyntaxError"),
])  # fmt: skip
def test_a_file_that_is_no_study_is_one_line(tmp_path, content, said):
    path = tmp_path / "mine.py"
    path.write_text(content)
    with pytest.raises(UserError, match=said):
        load_study(str(path))
    with pytest.raises(UserError, match="there is no such file"):
        load_study(str(tmp_path / "none.py"))


def test_names_groups_files_and_all_mean_studies(file):
    assert named_studies(["control/any-model"]) == ["control/any-model"]
    assert "control/any-model" in named_studies(["control"])
    assert set(named_studies(["all"])) <= set(study_files())
    assert named_studies([str(file), str(file)]) == [str(file)]
    with pytest.raises(UserError, match="study '4a': unknown; allowed are the names of"):
        named_studies(["4a"])


def test_a_folder_of_studies_is_listed_beside_the_shipped_ones(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "own/errors" not in study_files()
    (tmp_path / "studies/own").mkdir(parents=True)
    own = file.rename(tmp_path / "studies/own/errors.py")
    catalogue._files_of.cache_clear()
    catalogue._files_below.cache_clear()
    assert study_files()["own/errors"] == own
    assert "control/any-model" in study_files()
    assert named_studies(["own"]) == named_studies(["own/errors"]) == [str(own)]
    assert load_study(str(own)).name == "own/errors"
    own.rename(own.with_name("other.py"))
    catalogue._files_of.cache_clear()
    catalogue._files_below.cache_clear()
    with pytest.raises(UserError, match="calls itself 'own/errors', must be 'own/other'"):
        load_study("own/other")


def test_every_shipped_study_is_named_as_its_file_and_says_what_it_is():
    for name in study_files():
        study = load_study(name)
        assert study.name == name
        assert study.summary
        assert not study.summary.endswith(".")
        assert isinstance(study.settings(), StudySettings)
        quick = study.settings(**command._quick(study, True))
        assert quick.seeds <= 2
        assert set(study.after) <= set(study_files())
        kinds = {each.kind for each in study.published}
        assert kinds <= {"simulation", "bench"}
        assert not study.published or study.source
        assert not (study.published or study.musts) or study.exact or study.serial, name


def test_what_only_a_person_has_must_be_given():
    class Settings(StudySettings):
        bag: str = ""

    study = Study("own/bag", "", "of a bag", dict, (), (), settings=Settings, needs=("bag",))
    with pytest.raises(UserError, match="own/bag: needs --bag"):
        check_needs(study, study.settings())
    check_needs(study, study.settings(bag="here"))


def test_cells_are_named_seed_by_seed(tmp_path):
    study = Study("own/cells", "", "cells", dict, ("a", "b"), lambda case: (case.upper(),))
    cells = study.cells(StudySettings(seeds=2))
    expected = [("a", "A", 0), ("b", "B", 0), ("a", "A", 1), ("b", "B", 1)]
    assert [(c.case, c.method, c.seed) for c in cells] == expected
    assert len(replace(study, seeded=False).cells(StudySettings(seeds=2))) == 2
    results = Results(StudySettings(), Store(tmp_path, "own/cells", "1"))
    results.cells += cells
    for cell in cells:
        results.store.add(cell, {"seed": cell.seed})
    assert list(results.by_method()) == [("a", "A"), ("b", "B")]
    assert [each["seed"] for each in results.of("b", "B")] == [0, 1]


def test_the_command_offers_what_a_study_declares(file):
    for others, options in (([], {"seeds", "gain"}), (["control/any-model"], {"seeds"})):
        offered = command.Chosen.more_options({"names": [str(file), *others]})
        assert {name for settings in offered.values() for name in settings} == options
