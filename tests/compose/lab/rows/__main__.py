"""Reads all rows of Redis and PostgreSQL where the stack publishes them, and compares them with the query service.

`python -m tests.compose.lab.rows --query PORT --redis PORT --postgresql PORT` ends when each state of the suite has the
same rows, with the same values, in all three; else with the first differences. It prints the numbers of rows, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import sql
from redis import Redis
from redis.exceptions import RedisError

from contracts.records.named_states import named_in
from contracts.wire.window_key import window_key
from examples.departures.application import suite
from services.client import Client, ClientError
from tests.compose.configured import ROOT, query_token
from tests.spark_app.running import until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from contracts.model.named_state import NamedState

Rows = dict[str, Any]
"""The value of each row, by its name in Redis: the key, of a state with windows also the start of the window."""

PATIENCE_S = 120.0
PAUSE_S = 1.0
LISTED = 5
PASSING = (RedisError, psycopg.OperationalError, ClientError)
"""Errors of a store or service that has just started."""


class Ports(NamedTuple):
    """The published ports."""

    query: int
    redis: int
    postgresql: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare: 0, or 1 with what differs."""
    options = argparse.ArgumentParser(prog="python -m tests.compose.lab.rows")
    for port in Ports._fields:
        options.add_argument(f"--{port}", type=int, required=True)
    ports = Ports(**vars(options.parse_args(arguments)))
    states = named_in(suite)
    wrong: dict[str, str] = {}

    def agree() -> bool:
        wrong.update({name: problem(ports, state) for name, state in states.items()})
        return not any(wrong.values())

    try:
        until(agree, "the same rows in both stores as in the query service", PATIENCE_S, PAUSE_S)
    except AssertionError as error:
        print(f"{error}; {'; '.join(filter(None, wrong.values()))}", file=sys.stderr)
        return 1
    print(json.dumps({name: len(in_redis(ports.redis, state)) for name, state in states.items()}))
    return 0


def problem(ports: Ports, state: NamedState) -> str:
    """Why the rows of a state differ; empty if they are equal."""
    try:
        answers = asyncio.run(answered(ports.query, state))
        stored = {"Redis": in_redis(ports.redis, state), "PostgreSQL": in_postgresql(ports.postgresql, state)}
    except PASSING as error:
        return f"{state.name}: {error!r}"
    return differences(state.name, answers, stored)


def differences(state: str, answers: Rows, stored: Mapping[str, Rows]) -> str:
    """Return the rows of each store that differ from the answers, which must not be empty; empty if none do."""
    if not answers:
        return f"{state}: no answers"
    wrong = {
        store: [one for one in answers | rows if answers.get(one) != rows.get(one)] for store, rows in stored.items()
    }
    return "; ".join(f"{state} in {store}: {len(of)} differ: {of[:LISTED]}" for store, of in wrong.items() if of)


async def answered(port: int, state: NamedState) -> Rows:
    """All answers of the query service for a state."""
    async with Client(f"http://127.0.0.1:{port}", token=query_token(), discover=False) as client:
        newest = [one async for one in client.items(state.name)]
        if state.window is None:
            return {one.key: one.value for one in newest}
        windows = [window for key in newest async for window in client.windows(state.name, key.key)]
        return {named(state, window.key, window.window_start): window.value for window in windows}


def in_redis(port: int, state: NamedState) -> Rows:
    """The rows of a state in Redis."""
    with Redis(port=port, decode_responses=True) as client:
        keys = [*client.scan_iter(match=f"{state.name}:*", count=1_000)]
        values = client.pipeline(transaction=False)
        for key in keys:
            values.hget(key, "value")
        found = zip(keys, values.execute(), strict=True)
        return {key.removeprefix(f"{state.name}:"): json.loads(value) for key, value in found}


def in_postgresql(port: int, state: NamedState) -> Rows:
    """The rows of a state in PostgreSQL."""
    url = (ROOT / "deploy" / "sink" / "postgresql_url").read_text(encoding="utf-8").strip()
    with psycopg.connect(url, host="127.0.0.1", port=port) as connection:
        rows = connection.execute(sql.SQL("SELECT key, window_start, value FROM {}").format(sql.Identifier(state.name)))
        return {named(state, key, start): value for key, start, value in rows}


def named(state: NamedState, key: str, window_start: datetime | None) -> str:
    """The name of a row, as in Redis."""
    return key if state.window is None or window_start is None else window_key(key, window_start).decode()


if __name__ == "__main__":
    sys.exit(main())
