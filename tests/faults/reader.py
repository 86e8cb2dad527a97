"""A client that reads the states of a run without a pause, and notes each that goes back."""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import orjson

from tests.faults.application import app
from tests.faults.ledgers import order

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_S = 2.0
PAUSE_S = 0.02


class MonotonicReader:
    """Reads the meters of a load, in turn, in a thread of its own."""

    def __init__(self, port: int, meters: Mapping[str, object]) -> None:
        self._port = port
        self._meters = meters
        self._orders: dict[str, tuple[int, int]] = {}
        self._changed = time.monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read_on, name="reading", daemon=True)
        self.backwards: list[str] = []
        self.stall_s = 0.0
        self.reads = 0
        self.latencies: list[float] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def take(self, name: str, snapshot: Mapping[str, Any] | None) -> None:
        """Note the answer for a meter; None if the service has none."""
        former, found = self._orders.get(name, (0, 0)), order(snapshot) if snapshot else (0, 0)
        if found < former:
            self.backwards.append(f"{name}: {found} after {former}")
        elif found > former:
            self._orders[name] = found
            now = time.monotonic()
            self.stall_s, self._changed = max(self.stall_s, now - self._changed), now

    def _read_on(self) -> None:
        while not self._is_over.is_set():
            for name in list(self._meters)[:100]:
                began = time.monotonic()
                is_answered, snapshot = read_state(self._port, name)
                if is_answered:
                    self.take(name, snapshot)
                    self.reads += 1
                    self.latencies.append(time.monotonic() - began)
                if self._is_over.wait(PAUSE_S):
                    return
            self._is_over.wait(PAUSE_S)


def read_state(port: int, name: str) -> tuple[bool, dict[str, Any] | None]:
    """Return whether the query service answers for a meter, and its snapshot: None if it knows none."""
    connection = HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
    try:
        connection.request("GET", f"/v1/states/{app.name}/{quote(name, safe='')}")
        response = connection.getresponse()
        body = orjson.loads(response.read())
    except (OSError, HTTPException, ValueError):
        return False, None
    finally:
        connection.close()
    if response.status == HTTPStatus.OK:
        return True, body["value"]
    return response.status == HTTPStatus.NOT_FOUND, None
