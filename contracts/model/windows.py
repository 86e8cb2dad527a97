"""The windows of an event in a windowed state: by its time, aligned to 1970-01-01T00:00Z plus the state's offset."""

from datetime import UTC, datetime, timedelta

from contracts.model.state import State
from contracts.types.quantize import EPOCH, MICROSECOND


def overlap(state: type[State]) -> bool:
    """Return whether an event is in several windows of the state."""
    return state.window is not None and _every(state) < state.window


def since_last_start(state: type[State], ts: datetime) -> timedelta:
    """Return the time from the start of the newest window that contains `ts` to `ts`."""
    return (ts - EPOCH - state.offset) % _every(state)


def last_window_start(state: type[State], ts: datetime) -> datetime:
    """The start of the newest window that contains this time. Raises OverflowError if it is before the year 1."""
    return ts.astimezone(UTC) - since_last_start(state, ts)


def last_window_start_sql(state: type[State], ts: str) -> str:
    """The SQL of `last_window_start`, in microseconds since 1970, over an expression of a timestamp."""
    offset = state.offset // MICROSECOND
    time = f"unix_micros({ts})"
    past = f"{time} - {offset}L" if offset else time
    return f"({time} - pmod({past}, {_every(state) // MICROSECOND}L))"


def window_starts(state: type[State], ts: datetime) -> list[datetime]:
    """The starts of all windows that contain this time, in ascending order. Raises OverflowError as above."""
    last, every = last_window_start(state, ts), _every(state)
    return [last - number * every for number in reversed(range(state.lifetime // every))]


def window_starts_sql(state: type[State], ts: str) -> str:
    """The SQL of `window_starts`, an array of timestamps, over an expression of a timestamp."""
    last, every = last_window_start_sql(state, ts), _every(state)
    before, step = (state.lifetime - every) // MICROSECOND, every // MICROSECOND
    if not before:
        return f"array(timestamp_micros({last}))"
    return f"transform(sequence({last} - {before}L, {last}, {step}L), start -> timestamp_micros(start))"


def _every(state: type[State]) -> timedelta:
    if state.every is None:
        raise TypeError(f"{state.__name__} has a lifetime, and no windows of the clock")
    return state.every
