"""Jumps of a node's time: of /clock where `use_sim_time` is set, else of the system clock."""

import threading

from rclpy.clock import JumpThreshold, ROSClock, TimeJump
from rclpy.duration import Duration

from softcr_runtime.ros.clocks import SystemClockSteps

LONGEST_ADVANCE = 1.0
"""By which /clock may go forward from one message to the next without its being a jump [s]."""


class TimeWatch:
    """What a node's clock did between two looks.

    /clock that goes back by whatever little has jumped: a simulator was reset, a bag is looped.
    The first message on /clock is no jump: there was no time before it.
    """

    def __init__(self, clock: ROSClock) -> None:
        """Watch a clock of ROS time; `close` ends it."""
        self._clock, self._steps = clock, SystemClockSteps()
        self._lock = threading.Lock()  # rclpy calls back in the executor's thread
        self._before, self._jumped = 0, 0.0
        self._handle = clock.create_jump_callback(
            JumpThreshold(
                min_forward=Duration(seconds=LONGEST_ADVANCE),
                min_backward=Duration(nanoseconds=-1),
                on_clock_change=True,
            ),
            pre_callback=self._note_time,
            post_callback=self._note_jump,
        )

    @property
    def simulated(self) -> bool:
        """Whether time is that of /clock."""
        return bool(self._clock.ros_time_is_active)

    @property
    def unknown(self) -> bool:
        """Whether time is that of /clock, and nothing has come there yet."""
        return self.simulated and self._clock.now().nanoseconds == 0

    def look(self) -> float:
        """By how much time has jumped since the last look [s]; 0: it has not."""
        step = self._steps.look()
        with self._lock:
            jumped, self._jumped = self._jumped, 0.0
        return jumped if self.simulated else step

    def close(self) -> None:
        """Watch no longer."""
        self._handle.unregister()

    def _note_time(self) -> None:
        self._before = self._clock.now().nanoseconds

    def _note_jump(self, _: TimeJump) -> None:
        if self._before:  # of `use_sim_time` set during a run, rcl tells no difference
            with self._lock:
                self._jumped += 1e-9 * (self._clock.now().nanoseconds - self._before)
