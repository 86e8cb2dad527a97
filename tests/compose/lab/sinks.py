"""Checks compose.sink.yaml: in the end Redis and PostgreSQL have the rows that the query service answers."""

from __future__ import annotations

from tests.compose.lab.checks import Checks

FILES = ("compose.sink.yaml",)
STORES = ("redis", "postgresql")
SINKS = ("sink-redis", "sink-postgresql")
CRASHES = (("sink-redis", 1_000), ("postgresql", 2_000), ("sink-postgresql", 3_000), ("redis", 4_000))
"""Each container, and after how many snapshots it crashes; there are some 8,400."""


class Sinks(Checks):
    """The checks. Each raises StackError, or CommandFailedError, when it does not hold."""

    def run(self) -> None:
        """All of it."""
        with self._steps.step("docker compose up, from nothing, with both stores and their sinks"):
            self._stack.up()
            self._stack.await_well(*STORES, *SINKS)
        self._court.crash_each(CRASHES)
        with self._steps.step("every flight of the day is as in the tables"):
            self._court.agree()
        with self._steps.step("both stores have the rows that the query service answers"):
            self.require_equal_rows()
        with self._steps.step("docker kill of both stores, and docker compose up: they still have them"):
            self._stack.commands.run("docker", "kill", *(self._stack.container(store)["Id"] for store in STORES))
            self._stack.up()
            self._stack.await_well(*STORES, *SINKS)
            self.require_equal_rows()
            for line in self._stack.usage():
                self._steps.report(line)
        with self._steps.step("docker compose down --volumes leaves nothing"):
            self._stack.remove()

    def require_equal_rows(self) -> None:
        """Every row of every state is the same in both stores and in the query service."""
        settings = self._stack.commands.environment
        ports = [f"--{service}={settings[f'{service.upper()}_PORT']}" for service in ("query", *STORES)]
        self._steps.report(f"rows: {self._court.run_module('tests.compose.lab.rows', *ports).strip()}")
