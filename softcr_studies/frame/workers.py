"""Where cells run: in processes of this machine, or on the workers of a Dask cluster.

A worker that is lost costs the cells it had: they are run again elsewhere. A cell whose worker is
lost again and again ends the run.
"""

import multiprocessing
import os
import pickle
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures import TimeoutError as OutOfTime  # another than the built-in one in 3.10
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

import numba
from threadpoolctl import threadpool_limits

from softcr_models.errors import UserError
from softcr_models.plugins import in_a_line
from softcr_models.warm_up import ROD, added_sets, ensure_warm
from softcr_studies.frame.catalogue import file_of, load_study
from softcr_studies.frame.cell import SECONDS, Cell, Result
from softcr_studies.frame.code_version import run_version

ATTEMPTS = 3


@dataclass(frozen=True)
class Job:
    """A cell on its way to a worker.

    Attributes:
        place: of the study.
        version: of the code that the results are kept for.
        pickled: the cell; it is made again only where the study's file has been read.
        threads: of the kernels; 0: as many as there are.
    """

    place: str
    version: str
    pickled: bytes
    threads: int = 1

    @property
    def cell(self) -> Cell:
        """To be run."""
        return pickle.loads(self.pickled)


def run_job(job: Job) -> Result:
    """Runs a cell in this process, on one thread of BLAS and as many of the kernels as it may.

    Returns:
        What the cell gives, and SECONDS, how long it took.

    Raises:
        UserError: what the cell refuses or raises, or this worker has another version of the code.
    """
    study = load_study(job.place)
    if (here := run_version(file_of(job.place))) != job.version:
        raise UserError(
            f"worker {multiprocessing.current_process().name} on {os.uname().nodename}: its "
            f"softcr or study file has version {here}, must be {job.version}: install the same"
        )
    cell = job.cell
    if cell.bag:  # of a worker that was lost while it wrote
        shutil.rmtree(cell.bag, ignore_errors=True)
    numba.set_num_threads(job.threads or numba.config.NUMBA_NUM_THREADS)
    try:
        begin = time.monotonic()
        with threadpool_limits(limits=1, user_api="blas"):
            result = study.run(cell)
        return {**result, SECONDS: time.monotonic() - begin}
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"study {study.name}, {_names([job])}: {in_a_line(error)}") from error


@dataclass(frozen=True)
class LocalWorkers:
    """Processes of this machine.

    Attributes:
        count: how many; of one worker without a deadline, this process.
        deadline: of `time.monotonic` [s]; None: there is none.
    """

    count: int
    deadline: float | None = None

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
        """Each job with its result, as they end, until the deadline, at which cells that are still
        running are stopped; what a cell raises is raised."""
        if not jobs:
            return
        ensure_warm((ROD, *added_sets()))
        if self.count == 1 and self.deadline is None:
            yield from ((job, run_job(job)) for job in jobs)
            return
        left, lost = list(jobs), 0
        while left:
            done = 0
            try:
                for job, result in self._round(left):
                    done += 1
                    left.remove(job)
                    yield job, result
            except OutOfTime:
                return
            except BrokenProcessPool:
                lost = 0 if done else lost + 1
                if lost == ATTEMPTS:
                    raise UserError(
                        f"study: a worker process ended {ATTEMPTS} times at {_names(left)}; "
                        "is there enough memory?"
                    ) from None

    def _round(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
        # threads of compiled kernels do not survive a fork
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(self.count, len(jobs)), context, _end_with_parent)
        try:
            futures: dict[Future[Result], Job] = {pool.submit(run_job, job): job for job in jobs}
            left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
            for future in as_completed(futures, left):
                yield futures[future], future.result()
        finally:
            workers = list((pool._processes or {}).values())
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.terminate()


class ClusterWorkers:
    """The workers of a Dask cluster; results come back, bags stay on a folder that all share."""

    def __init__(self, address: str, insecure: bool = False) -> None:
        """Connects to a scheduler.

        Args:
            address: `tls://host:port`; `tcp://host:port` on this machine.
            insecure: whether another machine may be reached without TLS.

        Raises:
            UserError: the address is not allowed, Dask is not installed, or nobody answers.
        """
        refuse_open_address(address, insecure)
        try:
            from distributed import Client
        except ImportError:
            raise UserError(
                "--cluster: needs dask.distributed: pip install 'softcr[cluster]'"
            ) from None
        try:
            self._client = Client(address, timeout="10s")
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"--cluster {address}: {str(error).splitlines()[0]}") from None
        self._address = address
        self.count = len(self._client.nthreads())

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
        """See LocalWorkers; the scheduler itself gives a lost worker's cells to others."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker, as_completed

        futures = {self._client.submit(_on_cluster, job, pure=False): job for job in jobs}
        try:
            for future in as_completed(list(futures)):
                job = futures.pop(future)
                try:
                    result = future.result()
                except KilledWorker:
                    raise UserError(
                        f"study: the cluster lost every worker that had {_names([job])}; "
                        "is there enough memory?"
                    ) from None
                except CancelledError:
                    raise UserError(
                        f"--cluster {self._address}: the scheduler was lost; run the study again "
                        "to go on with it"
                    ) from None
                yield job, result
        finally:  # what is still to be run belongs to a study that has ended
            self._client.cancel(list(futures))


def refuse_open_address(address: str, insecure: bool) -> None:
    """Refuses a scheduler that exchanges code with whoever reaches its port.

    Raises:
        UserError: it is not on this machine, not asked for by TLS, and not allowed to be insecure.
    """
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:  # of a port that is none
        scheme, host, port = "", None, None
    if scheme not in ("tcp", "tls") or not host or port is None:
        raise UserError(f"--cluster {address!r}: must be tls://HOST:PORT or tcp://HOST:PORT")
    if scheme == "tls" or insecure or host == "localhost":
        return
    try:
        here = ip_address(host).is_loopback
    except ValueError:
        here = False
    if not here:
        raise UserError(
            f"--cluster {address}: without TLS, whoever reaches a port of the scheduler or of a "
            "worker runs code there; use tls://, or say --insecure where the network is yours alone"
        )


Workers = LocalWorkers | ClusterWorkers
"""Run jobs in any order; `count` of them at once."""


def _on_cluster(job: Job) -> Result:
    ensure_warm((ROD, *added_sets()))
    return run_job(job)


def _names(jobs: Sequence[Job]) -> str:
    cell = jobs[0].cell
    more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
    return f"{cell.case_name}, {cell.method}, seed {cell.seed}{more}"


def _end_with_parent() -> None:
    """A worker whose parent was killed would otherwise wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
