"""The position of a replay, stored in a small file, so that the next one continues there."""

import os
from datetime import date
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from examples.flights.errors import BadPositionError, OtherReplayError
from examples.flights.stream import Place


class Position(BaseModel):
    """Every event up to this place in the stream of these days is in the broker."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first: date
    days: int
    ts: AwareDatetime
    device_id: str
    event_id: str


class PositionFile:
    """The file of one replay: of `days` days from `first`. Without a path, nothing is remembered."""

    def __init__(self, path: Path | None, first: date, days: int) -> None:
        self._path = path
        self._first = first
        self._days = days

    def read(self) -> Place | None:
        """The place that was reached, None at the beginning. Raises OtherReplayError, BadPositionError."""
        if self._path is None or not self._path.exists():
            return None
        try:
            position = Position.model_validate_json(self._path.read_bytes())
        except ValidationError as error:
            raise BadPositionError(self._path) from error
        if (position.first, position.days) != (self._first, self._days):
            raise OtherReplayError(self._path, position.first, position.days)
        return position.ts, position.device_id, position.event_id

    def write(self, place: Place) -> None:
        """Remember a place: after a crash the file has either this one or the one before."""
        if self._path is None:
            return
        ts, device_id, event_id = place
        position = Position(first=self._first, days=self._days, ts=ts, device_id=device_id, event_id=event_id)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_name(f"{self._path.name}.new")
        with new.open("wb") as file:
            file.write(position.model_dump_json().encode())
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
