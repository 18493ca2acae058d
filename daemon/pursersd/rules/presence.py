"""Whether somebody is at work in a conversation: its model calls tools, or waits (bridge.md §3, interaction)."""


class Presence:
    """The running calls of one conversation and its last sign of life. The caller gives the time, in seconds.

    Pings, the handshake and lists of tools are no activity: a host sends them without its model.
    """

    def __init__(self, now: float) -> None:
        self._last = now
        self._calls = 0
        self._forms = 0
        self.waits = 0
        """Waits that run. Changed here alone."""

    def __repr__(self) -> str:
        return f"<Presence {self._calls} calls {self.waits} waits, last at {self._last:.3f}>"

    @property
    def is_waiting(self) -> bool:
        """Whether the model does nothing but wait."""
        return 0 < self.waits >= self._calls

    @property
    def is_busy(self) -> bool:
        """Whether a call other than a wait runs."""
        return self._calls > self.waits

    def began(self, now: float) -> None:
        """The model called a tool."""
        self._calls += 1
        self._last = now

    def ended(self, now: float) -> None:
        """That call is over."""
        self._calls -= 1
        self._last = now

    def wait_began(self) -> None:
        """A running call turned out to be a wait."""
        self.waits += 1

    def wait_ended(self) -> None:
        """That wait is over."""
        self.waits -= 1

    def forms_changed(self, now: float, change: int) -> None:
        """So many more calls than before (or fewer) do nothing but wait for the human to fill in a form."""
        self._forms += change
        self._last = now

    def resumed(self, last: float) -> None:
        """Its last sign of life was given to an earlier daemon."""
        self._last = last

    def idle_at(self, limit_s: float) -> float:
        """When it counts as idle, unless something happens; infinite while a call runs that waits for no human.

        An open form is no work: the human may have gone, and the bridge counts from the call on, too.
        """
        return float("inf") if self._calls > self._forms or self.waits else self._last + limit_s

    def is_active(self, now: float, limit_s: float) -> bool:
        """Whether a call runs that waits for no human, or the last sign of life is not older than `limit_s`."""
        return now <= self.idle_at(limit_s)
