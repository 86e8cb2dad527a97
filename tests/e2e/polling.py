"""Somebody who asks the query service for everything, again and again, through whatever happens."""

from __future__ import annotations

import json
import threading
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

Order = tuple[str, int]
PAUSE_S = 0.5
ANSWER_S = 5.0
PAGE = 500


class Polling:
    """Asks from a thread of its own. Notes every key that is shown as less than it was before."""

    def __init__(self, port: int, *states: str) -> None:
        self._base = f"http://127.0.0.1:{port}/v1/states"
        self._states = states
        self._shown: dict[tuple[str, str], Order] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, name="asking", daemon=True)
        self.back: list[str] = []
        self.answers = 0
        self.refused = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def all(self, state: str) -> dict[str, dict[str, Any]]:
        """The service's answers for all keys now. Raises OSError, HTTPException while it cannot."""
        return {item["key"]: item for page in self._pages(state) for item in page}

    def is_all(self, state: str, versions: dict[str, int]) -> bool:
        """Return whether it has these keys at these versions, and no others."""
        try:
            return {key: item["version"] for key, item in self.all(state).items()} == versions
        except (OSError, HTTPException):
            return False

    def _ask_on(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            for state in self._states:
                try:
                    for page in self._pages(state):
                        self._take(state, page)
                except (OSError, HTTPException):
                    self.refused += 1

    def _take(self, state: str, page: list[dict[str, Any]]) -> None:
        for item in page:
            order: Order = (item["window_start"], item["version"])
            if order < self._shown.get((state, item["key"]), order):
                self.back.append(f"{state} {item['key']}: {order} after {self._shown[state, item['key']]}")
            self._shown[state, item["key"]] = order
            self.answers += 1

    def _pages(self, state: str) -> Iterator[list[dict[str, Any]]]:
        after = ""
        while True:
            url = f"{self._base}/{state}?limit={PAGE}{after}"
            with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:  # noqa: S310 (the service on this machine)
                page = json.load(answer)
            yield page["items"]
            if page["after"] is None:
                return
            after = f"&after={quote(page['after'], safe='')}"
