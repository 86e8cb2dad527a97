"""Reads and watches with the Python client of one version: `python -m queried_client FACTS URL…`.

It imports that version's client and nothing of this tree. It ends when its input does, and writes to the file FACTS
what it has seen.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from services.client import Client, ClientError, Found, WatchFilter

PAUSE_S, BATCH = 0.05, 10
KEYS = {state: [f"{state}/{number:02}" for number in range(30)] for state in ("cars", "hours")}


class Reader:
    """One client that reads keys and batches, and watches all of them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._newest: dict[str, tuple[Any, ...]] = {}
        self.reads: Counter[str] = Counter()
        self.older: list[str] = []
        self.failed: list[str] = []
        self.longest_s = 0.0
        self.watched: dict[str, tuple[int, int]] = {}
        """The last version of each window that a watch has yielded."""

    async def read(self) -> None:
        """Read one key after the other, and batches."""
        for turn in itertools.count():
            for state, keys in KEYS.items():
                key, several = keys[turn % len(keys)], [keys[(turn + more) % len(keys)] for more in range(BATCH)]
                await self._timed(f"get {key}", self._client.get(state, key))
                await self._timed(f"batch from {several[0]}", self._client.get_many(state, several))
            await asyncio.sleep(PAUSE_S)

    async def watch(self) -> None:
        """Watch all windows of all keys; begin again when the client gives up."""
        filters = (WatchFilter("cars", prefix="cars/"), WatchFilter("hours", prefix="hours/", window="all"))
        while True:
            try:
                async for update in self._client.watch_many(*filters):
                    if isinstance(update, Found):
                        self._see(f"watched {update.state} {update.key} {update.window_start}", _order(update)[1:])
                        self.watched[f"{update.state} {update.key} {_order(update)[0]}"] = update.epoch, update.version
            except ClientError as error:
                self.failed.append(f"watch: {error!r}")

    async def _timed(self, name: str, call: Any) -> None:
        began = time.monotonic()
        try:
            found = await call
        except ClientError as error:
            self.failed.append(f"{name}: {error!r}")
        else:
            self.reads[name.partition(" ")[0]] += 1
            for answer in found if isinstance(found, list) else [found]:
                if isinstance(answer, Found):
                    self._see(f"read {answer.state} {answer.key}", _order(answer))
                else:
                    self.failed.append(f"{name}: {answer!r}")
        self.longest_s = max(self.longest_s, time.monotonic() - began)

    def _see(self, name: str, order: tuple[Any, ...]) -> None:
        if order < self._newest.get(name, order):
            self.older.append(f"{name}: {order} after {self._newest[name]}")
        self._newest[name] = order


def _order(found: Found[Any]) -> tuple[str, int, int]:
    start = "" if found.window_start is None else found.window_start.isoformat(timespec="milliseconds")
    return start.replace("+00:00", "Z"), found.epoch, found.version


async def run(urls: list[str]) -> Reader:
    """Read and watch until the input ends."""
    async with Client(urls) as client:
        reader = Reader(client)
        tasks = [asyncio.create_task(reader.read()), asyncio.create_task(reader.watch())]
        ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
            task.cancel()
        await asyncio.wait(tasks)
    return reader


def main(facts: Path, urls: list[str]) -> None:
    """Write what was seen."""
    reader = asyncio.run(run(urls))
    names = ("reads", "older", "failed", "longest_s", "watched")
    facts.write_text(json.dumps({name: getattr(reader, name) for name in names}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
