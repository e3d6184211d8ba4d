"""ROS domains for tests: no two workers share one, and none comes back soon."""

import itertools
import os
import random

_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_share = range(1 + _worker, 101, _workers)
_domains = itertools.cycle(random.SystemRandom().sample(_share, len(_share)))


def fresh_domain() -> str:
    """A ROS domain of this worker's share that no test before has used, while there are any."""
    return str(next(_domains))
