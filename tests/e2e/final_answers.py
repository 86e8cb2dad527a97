"""Somebody who asks the query service for all windows and gaps, and remembers what it calls final."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    Second = tuple[str, str, int]
    """A state, a key, and a second since 1970."""

ANSWER_S = 10.0
MOST_WINDOWS = 1000


class Window(NamedTuple):
    """A closed window."""

    epoch: int
    version: int
    value: Any


class FinalAnswers:
    """What the service has called final, and what of it has changed. `ask` must be called again and again."""

    def __init__(self, port: int, states: Iterable[str], keys: Iterable[str], begin: int) -> None:
        self._port = port
        self._asked = [(state, key) for state in states for key in keys]
        self._from = quote(datetime.fromtimestamp(begin).astimezone().isoformat())
        self._begin = begin
        self.seconds: dict[Second, str] = {}
        """The kind of each second before `final_until`."""
        self.windows: dict[tuple[str, str, datetime], Window] = {}
        """What was not open any more, or had an ETag that ends with `.closed`."""
        self.changed: dict[Any, tuple[Any, Any]] = {}
        """The first and the last answer of what has changed after it was called final."""
        self.final_until = 0
        """Before this second, all was final in the last round."""
        self.rounds = 0

    def __str__(self) -> str:
        counts = f"{len(self.seconds)} seconds, {self.gaps()} of them gaps, {len(self.windows)} windows"
        return f"{self.rounds} rounds; final: {counts}"

    def ask(self) -> None:
        """Ask for everything once. A service that does not answer is asked again in the next round."""
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_S)) as connection:
            try:
                self.final_until = min([self._ask(connection, *question) for question in self._asked])
            except (OSError, HTTPException):
                return
        self.rounds += 1

    def gaps(self) -> int:
        """Return how many seconds are final gaps."""
        return sum(kind == "gap" for kind in self.seconds.values())

    def _ask(self, connection: HTTPConnection, state: str, key: str) -> int:
        path = f"/v1/states/{state}/{key}"
        newest, tag = _get(connection, path)
        if newest is None:
            return 0
        if tag.endswith('.closed"'):
            self._note_window(state, newest)
        answer, _ = _get(connection, f"{path}/windows?from={self._from}&limit={MOST_WINDOWS}")
        for window in answer["windows"]:
            if not window["is_open"]:
                self._note_window(state, window)
        coverage, _ = _get(connection, f"{path}/coverage?from={self._from}&limit={MOST_WINDOWS}")
        final_until = _second(coverage["final_until"])
        for interval in coverage["intervals"]:
            for second in range(_second(interval["from"]), min(_second(interval["to"]), final_until)):
                self._note(self.seconds, (state, key, second), interval["kind"])
        return final_until

    def _note_window(self, state: str, answer: dict[str, Any]) -> None:
        start = datetime.fromisoformat(answer["window_start"])
        self._note(
            self.windows, (state, answer["key"], start), Window(answer["epoch"], answer["version"], answer["value"])
        )

    def _note(self, final: dict[Any, Any], what: Any, value: Any) -> None:
        if final.setdefault(what, value) != value:
            self.changed[what] = final[what], value


def _get(connection: HTTPConnection, path: str) -> tuple[Any, str]:
    """Return an answer and its ETag; None of a key that was never seen. Raises OSError, HTTPException."""
    connection.request("GET", path)
    response = connection.getresponse()
    body = json.loads(response.read())
    if response.status not in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}:
        raise HTTPException(f"{response.status} {body}")
    return body if response.status == HTTPStatus.OK else None, response.headers.get("ETag", "")


def _second(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp())
