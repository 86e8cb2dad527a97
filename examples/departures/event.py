"""The fields of a flight's event that the counts read."""

from examples.flights.event import Kind
from stateloop import BaseEvent


class Departure(BaseEvent):
    """An event of a flight. `ts` is the time at which it left, or at which it was to leave if it is cancelled."""

    event_id: str
    kind: Kind
    carrier: str
    origin: str
    dest: str
    delay: int | None = None
    """The delay of departed and landed flights, in minutes; negative when early."""
