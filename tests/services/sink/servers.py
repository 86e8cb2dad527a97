"""Private servers of Redis and PostgreSQL for tests."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import redis
from psycopg import errors, sql

from contracts.sinks import Windows
from contracts.testing.stores import StoredRow
from services.sink.stores.postgresql import PostgresqlStore
from services.sink.stores.redis import OFFSET, RedisStore
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from contracts.sinks import SinkStore, Target

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """A server that can be killed, and started again with what it has on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        user = self.user
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, user=user, cwd=self.folder)
        wait_until(self.is_ready, f"{self.command()[0]}: {self.folder / 'log'}", DEADLINE_S)

    def kill(self) -> None:
        """As a machine that fails: nothing is flushed or closed."""
        assert self.process
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(DEADLINE_S)

    @property
    def user(self) -> int | None:
        return None


class RedisServer(Server):
    """Redis, which appends what it does to a file."""

    @staticmethod
    def missing() -> str | None:
        return None if shutil.which("redis-server") else "needs redis-server: apt-get install redis-server"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]
        return ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder), *durable]

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, decode_responses=True)

    def is_ready(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def store(self, target: Target) -> SinkStore:
        return RedisStore(self.url, target)

    async def rows(self, target: Target) -> list[StoredRow]:
        return self.found(target)

    async def empty(self, target: Target) -> None:  # noqa: ARG002
        with self.client() as client:
            client.flushdb()

    def found(self, target: Target) -> list[StoredRow]:
        with self.client() as client:
            keys: list[str] = list(client.scan_iter(f"{target.name}:*", count=10_000))
            documents: list[dict[str, str]] = [client.hgetall(key) for key in keys]
        return [_redis_row(target, key, one) for key, one in zip(keys, documents, strict=True) if one]


def _redis_row(target: Target, key: str, document: dict[str, str]) -> StoredRow:
    name = key.removeprefix(f"{target.name}:")
    if target.windows is Windows.ALL:
        name = name[: -len("@2026-05-01T08:00:00.000000Z")]
    order = document["order"]
    start, epoch, version, source = (int(order[at : at + 20]) - OFFSET for at in (0, 20, 40, 60))
    return StoredRow(name, start, epoch, version, source, json.loads(document["value"]))


class PostgresqlServer(Server):
    """PostgreSQL, which never runs as root."""

    @staticmethod
    def folder_of_programs() -> Path | None:
        found = shutil.which("postgres")
        versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
        return Path(found).parent if found else versions[-1].parent if versions else None

    @classmethod
    def missing(cls) -> str | None:
        return None if cls.folder_of_programs() else "needs PostgreSQL: apt-get install postgresql"

    @property
    def user(self) -> int | None:
        return None if os.geteuid() else pwd.getpwnam("nobody").pw_uid

    @property
    def url(self) -> str:
        return f"postgresql://stateloop@127.0.0.1:{self.port}/postgres"

    def program(self, name: str) -> str:
        folder = self.folder_of_programs()
        assert folder
        return str(folder / name)

    def initialise(self) -> None:
        if self.user is not None:
            os.chown(self.folder, self.user, -1)
        data = self.folder / "data"
        command = [self.program("initdb"), "-D", str(data), "-U", "stateloop", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*command, "--locale=C"], user=self.user, cwd=self.folder, check=True, capture_output=True)

    def command(self) -> list[str]:
        options = {
            "unix_socket_directories": "",
            "listen_addresses": "127.0.0.1",
            "fsync": "off",  # the machine stays, only the server is killed
            "shared_buffers": "32MB",
        }
        flags = [flag for name, value in options.items() for flag in ("-c", f"{name}={value}")]
        return [self.program("postgres"), "-D", str(self.folder / "data"), "-p", str(self.port), *flags]

    def is_ready(self) -> bool:
        assert self.process
        if self.process.poll() is not None:  # the processes of one that was killed are still there
            with (self.folder / "log").open("ab") as log:
                self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, user=self.user, cwd=self.folder)
        try:
            with psycopg.connect(self.url, connect_timeout=2) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.Error:
            return False

    def store(self, target: Target) -> SinkStore:
        return PostgresqlStore(self.url, target)

    async def rows(self, target: Target) -> list[StoredRow]:
        return self.found(target)

    async def empty(self, target: Target) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(target.name)))

    def found(self, target: Target) -> list[StoredRow]:
        query = sql.SQL("SELECT key, window_start, epoch, version, source, value FROM {}").format(
            sql.Identifier(target.name)
        )
        with psycopg.connect(self.url) as connection, suppress(errors.UndefinedTable):
            found: list[tuple[str, datetime, int, int, int, Any]] = connection.execute(query).fetchall()
            return [StoredRow(key, _microseconds(start), *rest) for key, start, *rest in found]
        return []


def _microseconds(time: datetime) -> int:
    since = time - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def folder_for_servers() -> Path:
    """Return a new folder that every user may enter: PostgreSQL runs as another one than root."""
    folder = Path(tempfile.mkdtemp(prefix="stateloop-sink-"))
    folder.chmod(0o755)
    return folder
