"""The machine of a loop, as faults change it: its file system, its system clock and its link to the broker."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.services.tools.broker.embedded import free_port_pair

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Iterator

HERE = Path(__file__).parent
SMALL_DISK = "512m"
LOCALHOST = "127.0.0.1"
CHUNK = 16_384
DELAY_S, BYTES_PER_S = 0.05, 3_000_000 / 8
"""Of the slow link, each way."""


def preloaded(folder: Path, name: str) -> dict[str, str]:
    """Compile a library, and return the environment of a process that loads it."""
    library = folder / f"{name}.so"
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(HERE / f"{name}.c")]
    subprocess.run(command, check=True)
    return {"LD_PRELOAD": str(library)}


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a small file system for checkpoint and store. Only root can."""
    small = folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(small)], check=True)  # noqa: S607
    try:
        for name in ("checkpoint", "query"):
            (small / name).mkdir()
            (folder / name).symlink_to(small / name)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)  # noqa: S607


class SystemClock:
    """The clock of all processes with this `environment`."""

    def __init__(self, folder: Path) -> None:
        self._seconds = folder / "clock"
        self._seconds.touch()
        self._set(0)
        self.environment = preloaded(folder, "clock") | {"FAULTS_CLOCK": str(self._seconds)}

    @contextmanager
    def ahead(self, seconds: int) -> Iterator[None]:
        """Set the clock ahead for a while, or back if negative."""
        self._set(seconds)
        try:
            yield
        finally:
            self._set(0)

    def _set(self, seconds: int) -> None:
        file = os.open(self._seconds, os.O_WRONLY)
        try:
            os.write(file, struct.pack("l", seconds))
        finally:
            os.close(file)


class BrokerLink:
    """A proxy between the broker and all processes with this `environment`."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self._port = port or free_port_pair()
        self._is_slow = False
        self._free_at = [0.0, 0.0]
        """When all bytes of a direction have passed."""
        self._loop = asyncio.new_event_loop()
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, LOCALHOST, 0))
        ends = {"FAULTS_LINK_FROM": str(self._port), "FAULTS_LINK_TO": str(server.sockets[0].getsockname()[1])}
        self.environment = preloaded(folder, "link") | ends | {"STATELOOP_BROKER_PORT": str(self._port)}
        threading.Thread(target=self._loop.run_forever, name="link", daemon=True).start()

    @contextmanager
    def slow(self) -> Iterator[None]:
        """Delay all bytes, and limit the rate of all connections together, for a while."""
        self._is_slow = True
        try:
            yield
        finally:
            self._is_slow = False

    async def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            broker_reader, broker_writer = await asyncio.open_connection(LOCALHOST, self._port)
        except OSError:  # there is no broker now
            writer.close()
            return
        await asyncio.gather(self._pass_on(0, reader, broker_writer), self._pass_on(1, broker_reader, writer))

    async def _pass_on(self, direction: int, source: StreamReader, target: StreamWriter) -> None:
        due = 0.0
        with suppress(OSError):
            while content := await source.read(CHUNK):
                due = max(self._due(direction, len(content)), due + 1e-6)  # the order of bytes
                self._loop.call_at(due, target.write, content)
                await asyncio.sleep(due - DELAY_S - self._loop.time())
        self._loop.call_at(max(due + 1e-6, self._loop.time()), target.close)

    def _due(self, direction: int, size: int) -> float:
        now = self._loop.time()
        if not self._is_slow:
            return now
        self._free_at[direction] = max(now, self._free_at[direction]) + size / BYTES_PER_S
        return self._free_at[direction] + DELAY_S
