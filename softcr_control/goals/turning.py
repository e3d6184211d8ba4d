"""How the orientation that is asked of a tip turns to another one: never faster than it may."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

_SAME = 1e-9  # turns that are smaller are none [rad]


@dataclass(frozen=True, eq=False)
class Turning:
    """An orientation on its way to another one, along the shortest turn.

    Attributes:
        now: that is asked for; None: none is.
        target: where it turns to; None where none is asked for.
        step: largest turn in a period [rad].
    """

    now: Rotation | None = None
    target: Rotation | None = None
    step: float = 0.0

    @property
    def done(self) -> bool:
        """Whether it is where it shall be."""
        return self.now is self.target or self._left.magnitude() < _SAME

    def towards(self, target: Rotation | None, begin: Rotation | None, step: float) -> "Turning":
        """On its way to another target, from where it is.

        Args:
            target: None: from now on none is asked for.
            begin: of the tip now, where nothing has been asked for yet; None: it is not known.
            step: see Turning.
        """
        if target is None:
            return Turning(step=step)
        now = self.now if self.now is not None else begin
        return Turning(target if now is None else now, target, step)

    def after(self) -> "Turning":
        """A period later."""
        if self.now is None or self.done:
            return replace(self, now=self.target)
        left = self._left.as_rotvec()
        angle = float(np.linalg.norm(left))
        if angle <= self.step:
            return replace(self, now=self.target)
        return replace(self, now=self.now * Rotation.from_rotvec(self.step / angle * left))

    def stopped(self) -> "Turning":
        """The same, but it stays as it is now."""
        return replace(self, target=self.now)

    def rows(self, count: int) -> np.ndarray | None:
        """(count, 4) quaternions x y z w from now on, one a period; None where none is asked."""
        if self.now is None:
            return None
        turning, found = self, [self.now.as_quat()]
        while len(found) < count and not turning.done:
            turning = turning.after()
            assert turning.now is not None
            found.append(turning.now.as_quat())
        found += [found[-1]] * (count - len(found))
        return np.array(found)

    @property
    def _left(self) -> Rotation:
        assert self.now is not None
        assert self.target is not None
        return self.now.inv() * self.target
