"""Compares the state in the checkpoint, on the topic of snapshots and in the query service: `stateloop verify`."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console

from contracts import Emit
from contracts.errors import StateloopError
from contracts.settings import read
from contracts.wire import Snapshot
from services.cli.spark import add_application, selected, spark_session
from services.client import Client, Expired, Found
from services.client.settings import ClientSettings
from services.runtime.broker_check import require_broker
from services.verify.comparison import compare, snapshots_of
from services.verify.errors import UnpublishedStateError
from services.verify.report import LISTED, counts, differences
from services.verify.sample import KeySample, NamedKeys
from services.verify.snapshots import topic_content
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import active_folder
from spark_app.checkpoint.republish import is_republication_due
from spark_app.lifecycle.published_state import KEY, PublishedState, published_state
from spark_app.run.supervise import first_line
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from contracts import Application
    from services.verify.comparison import ComparisonResult, IsLive, StoredSnapshots
    from services.verify.snapshots import KeyChoice, TopicContent

    OpenSession = Callable[[JobSettings], AbstractContextManager[SparkSession]]

DIFFERENT = 3
"""The exit code after differences."""
CLOCKS = timedelta(minutes=1)
"""The maximum difference of the clocks of the broker, the checkpoint's file system and this machine."""
PAUSE_S = 1.0
ANSWER_S = 5.0
"""The timeout of the first request to the query service."""


def main(given: Sequence[str], open_session: OpenSession = spark_session) -> int:
    """Run the command: 0 without a difference, 3 with one. Return 1 after an error, which is printed in one line.

    The query service is asked first: without it, the state would be read for nothing.
    """
    options, console = _options(given), Console(highlight=False, soft_wrap=True)
    try:
        settings, client = read(JobSettings), read(ClientSettings)
        if not options.no_query:
            asyncio.run(_require_query_service(client))
        require_broker(settings)
        with open_session(settings) as spark:
            each = selected(settings, options.application)
            found = [Verification(spark, one, own, client, options).run(console) for one, own in each]
    except StateloopError as error:
        print(f"stateloop verify: {error}", file=sys.stderr)
        return 1
    except PySparkException as error:
        print(f"stateloop verify: {first_line(str(error))}", file=sys.stderr)
        return 1
    return DIFFERENT if any(found) else 0


async def _require_query_service(settings: ClientSettings) -> None:
    """Raise a ClientError unless the query service answers."""
    async with Client(settings.url.split(","), token=settings.secret(None), deadline=ANSWER_S) as client:
        await client.states()


class Verification:
    """Compares the states of some keys of one application."""

    def __init__(
        self,
        spark: SparkSession,
        application: Application,
        settings: JobSettings,
        client: ClientSettings,
        options: argparse.Namespace,
    ) -> None:
        self._spark = spark
        self._application = application
        self._settings = settings
        self._client = client
        self._options = options
        sample = KeySample(options.sample, secrets.token_hex(8))
        self._keys: KeySample | NamedKeys = NamedKeys(options.keys) if options.keys else sample

    def run(self, console: Console) -> int:
        """Compare, print the result, and return the number of differences. Raises StateloopError."""
        checkpoint = self._checkpoint()
        content = self._topic(self._keys)
        keys = self._keys.keys - (checkpoint.unpublished if checkpoint else frozenset())
        is_live, topic, found = self._is_live(content), content.stored.of(keys), []
        sources = [topic]
        if checkpoint:
            stored = snapshots_of("checkpoint", checkpoint.snapshots).of(keys)
            committed = checkpoint.committed - CLOCKS if checkpoint.committed else None
            found.append(compare(stored, topic, partial(is_published, is_live, checkpoint), committed))
            sources.insert(0, stored)
        if not self._options.no_query:
            found += asyncio.run(self._against_query(sources, keys, is_live))
        _report(console, self._application, checkpoint, len(keys), found)
        return sum(len(one.differences) for one in found)

    def _checkpoint(self) -> PublishedState | None:
        """Return the chosen keys' state in the checkpoint; None if that cannot be compared with what was published.

        The job publishes a closed window when it drops it, and the state of a processor is its own.
        """
        if self._application.emit is Emit.CLOSE or self._application.processor is not None:
            return None
        if is_republication_due(active_folder(CheckpointFolder(self._spark, self._settings.checkpoint))):
            raise UnpublishedStateError(self._settings.checkpoint)
        with tempfile.TemporaryDirectory() as scratch:
            return published_state(self._spark, self._application, self._settings, Path(scratch), self._choose)

    def _choose(self, keys: DataFrame) -> Collection[str]:
        if isinstance(self._keys, KeySample):
            ranked = keys.orderBy(F.md5(F.concat(F.lit(self._keys.seed), KEY)).desc()).limit(self._keys.size)
            self._keys.offer_all(row[0] for row in ranked.collect())
        return self._keys.keys

    def _topic(self, keys: KeyChoice) -> TopicContent:
        return topic_content(self._settings.client(), self._application.topics.snapshots, keys)

    def _is_live(self, topic: TopicContent) -> IsLive:
        """Return whether a window is within its lifetime, by the clock; in a replay by the newest window."""
        now = topic.newest_window
        if not self._application.topics.replay:
            now = max(now, datetime.now(UTC))
        lifetime = self._application.state.lifetime
        return lambda start: start + lifetime > now + CLOCKS

    async def _against_query(
        self, sources: list[StoredSnapshots], keys: frozenset[str], is_live: IsLive
    ) -> list[ComparisonResult]:
        """Compare with the query service, which gets some time to read the topic."""
        deadline = time.monotonic() + self._options.patience
        sources = [self._queried(one) for one in sources]
        async with Client(self._client.url.split(","), token=self._client.secret(None)) as client:
            while True:
                query = await self._query(client, sorted(keys))
                found = [compare(one, query, is_live) for one in sources]
                if not any(one.differences for one in found) or time.monotonic() > deadline:
                    break
                await asyncio.sleep(PAUSE_S)
        if found[-1].newer:  # the topic must have what the query service had a moment ago
            found.append(compare(query, self._queried(self._topic(NamedKeys(keys)).stored), is_live))
        return found

    def _queried(self, one: StoredSnapshots) -> StoredSnapshots:
        """Return what the query service stores of the windows: all, or only the newest of each key."""
        return one if self._application.state.is_windowed else one.newest()

    async def _query(self, client: Client, keys: Sequence[str]) -> StoredSnapshots:
        name, expired = self._application.name, frozenset[str]()
        if self._application.state.is_windowed:
            values = [one.value for key in keys async for one in client.windows(name, key)]
        else:
            answers = await client.get_many(name, keys)
            values = [one.value for one in answers if isinstance(one, Found)]
            expired = frozenset(one.key for one in answers if isinstance(one, Expired))
        return self._queried(snapshots_of("query service", map(Snapshot.model_validate, values), expired))


def is_published(is_live: IsLive, checkpoint: PublishedState, start: datetime) -> bool:
    """Return whether a live window is in the checkpoint: one without its first events is on the topic alone."""
    return is_live(start) and checkpoint.publishes(start)


def _report(
    console: Console,
    application: Application,
    checkpoint: PublishedState | None,
    keys: int,
    found: list[ComparisonResult],
) -> None:
    console.print(f"[bold]{application.name}[/]: {keys:,} keys", end="")
    if checkpoint:
        console.print(f", batch {checkpoint.commit.batch} of epoch {checkpoint.commit.epoch}", end="")
        for key in sorted(checkpoint.unpublished):
            console.print(
                f"\n{key} has a window that is too large to be published: it is left out", markup=False, end=""
            )
    console.print()
    console.print(counts(found))
    listed = [one for each in found for one in each.differences]
    if listed:
        console.print(differences(listed))
    if len(listed) > LISTED:
        console.print(f"and {len(listed) - LISTED:,} more")


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="stateloop verify",
        description="Compare the state after the last commit in STATELOOP_CHECKPOINT with the newest snapshots on the "
        "topic and with the query service at STATELOOP_URL. The job may run.",
        epilog="It returns 0 without a difference, 3 with one, and 1 after an error.",
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help="compare these keys, in place of a sample")
    parser.add_argument("--sample", type=int, default=1000, metavar="N", help="number of keys (default: 1000)")
    parser.add_argument("--no-query", action="store_true", help="leave the query service out")
    parser.add_argument(
        "--patience",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="how long the query service may take to read what the topic has (default: 30)",
    )
    add_application(parser)
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
