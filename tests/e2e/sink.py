"""A sink as a process, with the store that it writes, both of which a test kills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from contracts.sinks import Target, Windows
from contracts.wire import Snapshot, decode_snapshot
from tests.spark_app.running import PATIENCE_S

if TYPE_CHECKING:
    from datetime import datetime

    from contracts.testing.stores import StoredRow
    from tests.e2e.loop import Loop
    from tests.forked import Forked
    from tests.services.sink.servers import PostgresqlServer, RedisServer


class Sink:
    """Writes these states of an application to a store, a row of each window."""

    def __init__(self, loop: Loop, server: RedisServer | PostgresqlServer, *states: str) -> None:
        self.server = server
        self._loop, self._states = loop, states
        self._name = f"sink-{type(server).__name__}"
        self._process: Forked | None = None

    def start(self) -> None:
        """Start the sink."""
        settings = {
            "sink_url": self.server.url,
            "sink_states": orjson.dumps(self._states).decode(),
            "sink_prefix": self._loop.prefix,
            "sink_retention": "P1D",
            "sink_batch": "20",
            "group": f"{self._loop.prefix}{self._name}",
        }
        self._process = self._loop.start("services.sink", self._name, **settings)

    def kill(self) -> None:
        """Kill the sink as kill -9 does; it may be dead already."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)

    def rows(self, state: str) -> list[StoredRow]:
        """All rows of a state in the store."""
        name = f"{self._loop.prefix}{state}"
        return sorted(self.server.found(Target(name, f"{name}.snapshots", Windows.ALL)))

    def snapshots(self, state: str) -> dict[tuple[str, datetime], Snapshot]:
        """The snapshot of each window in the store."""
        snapshots = [decode_snapshot(orjson.dumps(row.value)) for row in self.rows(state)]
        return {snapshot.window: snapshot for snapshot in snapshots}

    def reports_outage(self) -> bool:
        """Return whether it has seen for each state that the store is away."""
        log = self._loop.log(self._name).read_text(encoding="utf-8")
        outages = [line for line in log.splitlines() if "the store is unavailable" in line]
        return all(any(f'"{state}"' in line for line in outages) for state in self._states)
