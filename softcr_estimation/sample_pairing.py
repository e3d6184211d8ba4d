"""Which tip pose, or wrench, belongs to which pressure sample: by stamp, waiting a little."""

from collections.abc import Callable
from typing import Generic, TypeVar

from softcr_runtime.sample import Sample

AnySample = TypeVar("AnySample", bound=Sample)

PRESSURES, POSES, WRENCHES = "pressure/state", "mocap/tip/pose", "force_torque/wrench"


class SamplePairing(Generic[AnySample]):
    """Pairs pressure samples with the other sensor's of the same stamp, in the order they come.

    Clock and inbox are injected: the node waits on the monotonic clock for what DDS brings, a
    replay on the clock of a recording for what a bag holds.
    """

    def __init__(
        self,
        get: Callable[[float | None], AnySample | None],
        now: Callable[[], float],
        reject: Callable[[str, str], None],
        partner: str = POSES,
    ) -> None:
        """A pairing with nothing waiting.

        Args:
            get: the next letter of either topic, waiting for it up to a time [s] (None: for ever);
                None when there is none.
            now: the clock on which `get` waits [s].
            reject: told topic and reason of a letter that came too late.
            partner: topic of the other sensor.
        """
        self._get, self._now, self._reject, self._partner = get, now, reject, partner
        self._waiting: dict[str, list[AnySample]] = {PRESSURES: [], partner: []}

    def next_pressures(self) -> AnySample | None:
        """The next pressure sample; None when the inbox has no more."""
        return self._next(PRESSURES, None)

    def partner_of(self, stamp: int, patience: float) -> AnySample | None:
        """The other sensor's sample of `stamp` [ns], waiting up to `patience` [s]; None if none.

        A newer one is kept for its own pressures, an older one is rejected.
        """
        deadline = self._now() + patience
        while (left := deadline - self._now()) > 0.0:
            letter = self._next(self._partner, left)
            if letter is None:
                return None
            if letter.stamp == stamp:
                return letter
            if letter.stamp > stamp:
                self._waiting[self._partner].insert(0, letter)
                return None
            self._reject(self._partner, "came after its cycle")
        return None

    def _next(self, topic: str, timeout: float | None) -> AnySample | None:
        """The next letter of a topic; letters of the other topic wait in `_waiting`."""
        deadline = None if timeout is None else self._now() + timeout
        while not self._waiting[topic]:
            left = None if deadline is None else deadline - self._now()
            if left is not None and left <= 0.0:
                return None
            letter = self._get(left)
            if letter is None:
                return None
            self._waiting[letter.topic].append(letter)
        return self._waiting[topic].pop(0)
