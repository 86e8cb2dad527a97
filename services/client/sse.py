"""Server-sent events, as a stream of lines brings them: a pure parser (HTML standard, 9.2.6)."""

from __future__ import annotations

from typing import NamedTuple


class ServerEvent(NamedTuple):
    """One event. `id` is None where the event has none."""

    name: str
    data: str
    id: str | None


class Parser:
    """Parses the bytes of a stream, in pieces of any size, into complete events."""

    def __init__(self) -> None:
        self._unfinished = b""
        self._name = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """Return the events that end in this piece. A piece may end between CR and LF."""
        text = self._unfinished + piece
        whole, unfinished = (text[:-1], text[-1:]) if text.endswith(b"\r") else (text, b"")
        *lines, last = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._unfinished = last + unfinished
        return [event for line in lines if (event := self._line(line.decode("utf-8", "replace")))]

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._end()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _end(self) -> ServerEvent | None:
        event = ServerEvent(self._name or "message", "\n".join(self._data), self._id) if self._data else None
        self._name, self._id, self._data = "", None, []
        return event
