"""Workers that are lost: on a Dask cluster, in a search, and a run that is killed as a whole."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest
from kit.processes import TIMEOUT, until
from rich.console import Console

from softcr_models.errors import UserError
from softcr_models.warm_up import ensure_warm
from softcr_studies.frame.catalogue import load_study
from softcr_studies.frame.runner import Runner
from softcr_studies.frame.workers import ClusterWorkers, LocalWorkers

pytest.importorskip("optuna", reason="needs optuna: pip install 'softcr[surrogate]'")

QUIET = Console(file=io.StringIO())
STUDY = """
import os, time, uuid
import numpy as np
from softcr_studies.frame.search import TRIAL, Search, SearchSettings, ranked, tried, turns
from softcr_studies.frame.study import Cell, Metric, Row, Seeds, Study, StudySettings

def noted(cell, name):
    (cell.folder / f"{name}.{os.getpid()}.{uuid.uuid4().hex}").touch()
    time.sleep(float(os.environ.get("PAUSE", "0")))

def run(cell):
    noted(cell, f"{cell.case}-{cell.method}-{cell.seed}")
    return {"value": cell.random("plant").normal(float(cell.case), 1.0)}

class Settings(StudySettings):
    seeds: Seeds = 5
"""
CELLS = """
STUDY = Study(name="tmp/cells", source="", summary="quick cells", run=run, settings=Settings,
              cases=("1", "2", "3"), methods=("a", "b"), metrics=(Metric("value", "m", "value"),))
"""
SEARCHED = """
SEARCH = Search("tmp/search", __file__)

def turn(cell):
    def cost(trial):
        x = trial.suggest_float("x", -1.0, 1.0)
        noted(cell, f"turn-{cell.case.number}")
        return (x - 0.3) ** 2
    return SEARCH.take_turn(cell, {"x": 0.9}, cost)

def rows(results):
    trials = tried(results)
    yield Row.of("search", "start", "x", [trials[0].values["x"]], "m")
    yield Row.of("search", "best", "cost", [ranked(trials)[0].cost], "m")
    yield Row.of("search", "all", "trials", [len(trials)], "-")

class Settings(SearchSettings):
    trials: int = 24

STUDY = Study(name="tmp/search", source="", summary="a search", run=turn, settings=Settings,
              cases=turns, methods=(TRIAL,), further_rows=rows, seeded=False)
"""


@pytest.fixture(scope="module", autouse=True)
def _kernels():
    ensure_warm()


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "cells.py"
    path.write_text(STUDY + CELLS)
    return str(path)


def environment():
    """Of processes whose cells take long enough to be killed in."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "PAUSE": "0.15"}


class Cluster:
    """A scheduler and workers on the loopback."""

    def __init__(self, folder):
        self.folder, self.processes, self.clients = folder, {}, []
        self._begin("scheduler", "--host", "127.0.0.1", "--port", "0")
        self.file = folder / "scheduler.json"
        self.address = json.loads(until(self._told))["address"]

    def _told(self):
        return self.file.is_file() and self.file.read_text()

    def _begin(self, kind, *options, name="scheduler"):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard"]
        command += ["--scheduler-file", str(self.folder / "scheduler.json"), *options]
        log = (self.folder / f"{name}.log").open("w")
        self.processes[name] = subprocess.Popen(
            command, env=environment(), stdout=log, stderr=log, cwd=self.folder
        )

    def add_workers(self, *names):
        """Workers of one thread each; returns once all are known."""
        for name in names:
            options = ("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--name", name)
            self._begin("worker", *options, name=name)
        workers = ClusterWorkers(self.address)
        self.clients.append(workers._client)
        running = [name for name, each in self.processes.items() if each.poll() is None]
        workers._client.wait_for_workers(len(running) - 1, timeout=TIMEOUT)
        return workers

    def end(self):
        for client in self.clients:
            client.close()
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed", reason="needs Dask: pip install 'softcr[cluster]'")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.end()


def kept(results):
    return len(list(results.glob("studies/tmp/*/unfinished/cells/*.npz")))


def runs(directory):
    return Counter(path.name.partition(".")[0] for path in (directory / "shared").glob("*.*.*"))


def table(directory):
    return json.loads((directory / "table.json").read_text())["rows"]


def run(place, results, workers):
    """All of a study in this process, or on a cluster from it; its own cells take no time."""
    settings = load_study(place).settings()
    return Runner(results, workers, console=QUIET).run(place, settings)


def run_and_kill(place, results, workers, process, after):
    """A run during which a worker ends without a word, once so many cells are kept."""

    def kill():
        until(lambda: kept(results) >= after)
        process.send_signal(signal.SIGKILL)
        killed.append(kept(results))

    killed = []
    killer = threading.Thread(target=kill)
    killer.start()
    directory = run(place, results, workers)
    killer.join()
    process.wait()
    return directory, killed[0]


def test_a_cluster_that_loses_a_worker_makes_the_same_table(cluster, place, tmp_path):
    workers = cluster.add_workers("a", "b", "c")
    assert workers.count <= 3
    directory, at_kill = run_and_kill(
        place, tmp_path / "cluster", workers, cluster.processes["b"], after=8
    )
    assert 8 <= at_kill < 30
    usual = run(place, tmp_path / "local", LocalWorkers(1))
    assert table(directory) == table(usual)
    assert len(table(usual)) == 6
    begun = runs(directory)
    assert len(begun) == 30
    # only what the lost worker had, or had not handed over yet, is run again
    assert set(begun.values()) <= {1, 2}
    assert sum(count == 2 for count in begun.values()) <= 30 - at_kill


def test_a_search_on_a_cluster_loses_one_trial_with_a_worker(cluster, tmp_path):
    path = tmp_path / "searched.py"
    path.write_text(STUDY.replace("5)", "1)") + SEARCHED)
    workers = cluster.add_workers("d")
    directory, _ = run_and_kill(
        str(path), tmp_path / "cluster", workers, cluster.processes["c"], after=6
    )
    found = {row["quantity"]: row["mean"] for row in table(directory)}
    assert found["trials"] == 24
    assert found["x"] == 0.9  # the search begins where it was told to
    assert found["cost"] < 0.36
    study = load_study(str(path))
    search = sys.modules[study.run.__module__].SEARCH
    trials = search.open(study.settings(), directory / "shared").get_trials()
    complete = [each for each in trials if each.state.name == "COMPLETE"]
    assert sorted(each.user_attrs["turn"] for each in complete) == list(range(24))
    lost = [each for each in trials if each.state.name != "COMPLETE"]
    assert len(lost) <= 2
    again = {each.user_attrs["turn"]: each.params for each in complete}
    for each in lost:  # its candidate, where it was told one, was tried again by another worker
        assert not each.params or each.params == again[each.user_attrs["turn"]]


def test_a_run_that_is_killed_twice_goes_on(place, tmp_path):
    results = tmp_path / "killed"
    script = (
        "import sys; from pathlib import Path; from softcr_studies.frame.runner import Runner\n"
        "from softcr_studies.frame.catalogue import load_study\n"
        "from softcr_studies.frame.workers import LocalWorkers\n"
        "if __name__ == '__main__':\n"
        "    Runner(Path(sys.argv[2]), LocalWorkers(int(sys.argv[3]))).run(\n"
        "        sys.argv[1], load_study(sys.argv[1]).settings())\n"
    )
    (tmp_path / "script.py").write_text(script)
    shared = results / "studies/tmp/cells/unfinished"
    at_kills = []
    for workers, after in (("2", 6), ("1", 14)):
        words = [str(tmp_path / "script.py"), place, str(results), workers]
        process = subprocess.Popen(
            [sys.executable, *words], env=environment(), stdout=subprocess.DEVNULL
        )
        until(lambda after=after: kept(results) >= after)
        process.kill()
        process.wait()
        at_kills.append((kept(results), runs(shared)))
        assert kept(results) < 30
    directory = run(place, results, LocalWorkers(1))
    assert table(directory) == table(run(place, tmp_path / "local", LocalWorkers(1)))
    at_the_end = runs(directory)
    for kept_then, begun in at_kills:  # what was kept is never run again, all else once more
        assert len(at_the_end - begun) == 30 - kept_then
    kept_at_last, begun = at_kills[-1]
    assert (at_the_end - begun).total() == 30 - kept_at_last


def test_a_cluster_that_does_not_answer_is_one_line():
    pytest.importorskip("distributed", reason="needs Dask: pip install 'softcr[cluster]'")
    with pytest.raises(UserError, match=r"--cluster tcp://127\.0\.0\.1:1: "):
        ClusterWorkers("tcp://127.0.0.1:1")
