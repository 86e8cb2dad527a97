"""The replay itself: each event when it is due, its place remembered once it is delivered."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from examples.flights.event import FlightEvent
from examples.flights.replay.pace import Pace
from examples.flights.replay.position import PositionFile
from examples.flights.replay.progress import Report
from examples.flights.replay.sender import Sender

if TYPE_CHECKING:
    from examples.flights.stream import Place

TICK_S: Final = 0.1
"""The longest wait before it looks whether it was stopped."""
STOP_TICKS: Final = 50
"""How many waits for deliveries there are after it was stopped: what is not delivered then is sent by the next one."""
REMEMBER_EVERY: Final = 5_000
REMEMBER_TICKS: Final = 10
"""It remembers its position after this number of events, or of waits: that takes the disk some milliseconds."""


class Replay:
    """Sends a stream through a sender at a pace. `stopped` is called before each event, and while waiting."""

    def __init__(self, sender: Sender, pace: Pace, position: PositionFile, stopped: Callable[[], bool]) -> None:
        self._sender = sender
        self._pace = pace
        self._position = position
        self._stopped = stopped
        self._remembered: Place | None = None
        self._ticks = 0

    def run(self, events: Iterable[FlightEvent], report: Report) -> bool:
        """Send until the end (True) or until stopped (False); remember what was delivered. Raises DeliveryError."""
        try:
            ended = all(self._send(event, report) for event in events)
            return self._finish() and ended
        finally:
            self._remember()

    def _send(self, event: FlightEvent, report: Report) -> bool:
        """Send an event when it is due and there is room for it. False if it was stopped before."""
        while not self._stopped():
            remaining = self._pace.remaining(event.ts)
            if remaining <= 0 and self._sender.offer(event):
                report(self._sender.sent, event.ts)
                if self._sender.sent % REMEMBER_EVERY == 0:
                    self._remember()
                return True
            self._sender.wait(min(remaining, TICK_S) if remaining > 0 else TICK_S)
            self._ticks += 1
            if self._ticks % REMEMBER_TICKS == 0:
                self._remember()
        return False

    def _finish(self) -> bool:
        """Wait until all is delivered (True); not for long once it was stopped."""
        patience = STOP_TICKS
        while not self._sender.flush(TICK_S):
            patience -= self._stopped()
            if not patience:
                return False
        return True

    def _remember(self) -> None:
        delivered = self._sender.delivered
        if delivered is not None and delivered != self._remembered:
            self._position.write(delivered)
            self._remembered = delivered
