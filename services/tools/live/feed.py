"""Reads the query service: polls the console's metrics, and watches all keys of the application's state."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

import orjson
from aiohttp import ClientError, ClientSession, ClientTimeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from services.tools.live.view import Json, LiveView

INTERVAL_S = 1.0
TIMEOUT = ClientTimeout(total=5)
SILENCE_S = 20.0
"""The service sends a mark every few seconds: a connection without messages for this long is dead."""
FIRST_KEYS = 25
MAX_MESSAGE = 64 * 1024 * 1024


class Feed:
    """Updates the view in the background while it is open; an async context manager. Failures are retried.

    It reads the loop of this application, by default of the suite's first.
    """

    def __init__(
        self,
        view: LiveView,
        urls: Sequence[str],
        token: str | None,
        status: Path | None,
        application: str | None = None,
    ) -> None:
        self._view = view
        self._urls = [url.strip().rstrip("/") for url in urls]
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._status = status
        self._query = {} if application is None else {"application": application}

    async def __aenter__(self) -> Self:
        self._session = ClientSession(headers=self._headers, timeout=TIMEOUT)
        self._tasks = [asyncio.create_task(self._repeat(step)) for step in (self._poll, self._watch)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()

    async def _repeat(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except (ClientError, TimeoutError, OSError, ValueError, KeyError, TypeError) as error:
                self._view.error = f"{self._urls[0]}: {str(error) or type(error).__name__}"
                self._urls.append(self._urls.pop(0))
            await asyncio.sleep(INTERVAL_S)

    async def _poll(self) -> None:
        if self._status is not None and self._status.exists():
            self._view.processes = orjson.loads(self._status.read_bytes())
        loop = await self._get("/v1/loop", since=self._view.newest_point, **self._query)
        self._view.update_loop(loop, await self._get("/v1/loop/graph", **self._query))
        self._view.url = self._urls[0]

    async def _watch(self) -> None:
        if not self._view.loop:
            return
        state = self._view.loop["application"]
        for answer in (await self._get(f"/v1/states/{state}", limit=FIRST_KEYS))["items"]:
            if answer["key"] not in self._view.keys:
                self._view.update_key(answer, datetime.now(UTC))
        async with self._session.ws_connect(f"{self._urls[0]}/v1/watch", max_msg_size=MAX_MESSAGE) as socket:
            await socket.send_json({"type": "subscribe", "id": "live", "state": state, "prefix": "", "current": False})
            while True:
                message = orjson.loads(await socket.receive_str(timeout=SILENCE_S))
                if message["type"] == "state":
                    self._view.update_key(message["answer"], datetime.now(UTC))
                await asyncio.sleep(0)  # a full buffer must not keep the screen from being drawn

    async def _get(self, path: str, **query: str | int) -> Json:
        async with self._session.get(f"{self._urls[0]}{path}", params=query) as response:
            body: Json = orjson.loads(await response.read())
            if not response.ok:
                raise ValueError(body.get("detail", f"status {response.status}"))
            return body
