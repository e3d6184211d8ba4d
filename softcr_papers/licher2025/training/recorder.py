"""Work of a GPU that is launched as a whole: hundreds of small kernels as one CUDA graph."""

from collections import Counter
from collections.abc import Callable, Hashable

import torch

_REHEARSALS = 2  # runs of a kind one by one before it is recorded: libraries set themselves up
_AHEAD = 64  # runs that the host may be ahead of the device


class Recorder:
    """Runs work of several kinds again and again, every kind from its own recording.

    The first runs of a kind are done kernel by kernel; they count as any other run.
    """

    def __init__(self, generator: torch.Generator) -> None:
        """For work on the current device that draws from a generator of that device."""
        self._generator = generator
        self._rehearsed: Counter[Hashable] = Counter()
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._aside, self._mark = torch.cuda.Stream(), torch.cuda.Event()
        self._runs = 0

    def __call__(self, kind: Hashable, work: Callable[[], None]) -> None:
        """One run, which may not be over yet when this returns.

        Args:
            kind: of the work; whatever the host decides in it depends on the kind alone.
            work: looks at no value and changes tensors in place. Where there is a recording of its
                kind it is not called: the recording reads and changes the same tensors.
        """
        graph = self._graphs.get(kind)
        if graph is None and self._rehearsed[kind] < _REHEARSALS:
            self._rehearsed[kind] += 1
            self._rehearse(work)
        else:
            if graph is None:
                graph = self._graphs[kind] = self._recorded(work)
            graph.replay()
        self._runs += 1
        if self._runs % _AHEAD == 0:
            self._mark.synchronize()
            self._mark.record()

    def _rehearse(self, work: Callable[[], None]) -> None:
        self._aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._aside):
            work()
        torch.cuda.current_stream().wait_stream(self._aside)

    def _recorded(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        # recordings may share memory: they run one after the other, and what they keep is not in it
        with torch.cuda.graph(graph, pool=self._pool):
            work()
        return graph
