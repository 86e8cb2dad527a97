"""Compares the state in the checkpoint, on the topic of snapshots and in the query service: `stateloop verify`."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from contracts import Emit
from contracts.settings import read
from contracts.wire import Snapshot
from services.client import Client, Expired, Found
from services.client.settings import ClientSettings
from services.runtime.command_line import ExitCode
from services.runtime.kafka.broker_check import require_broker
from services.runtime.terminal import TerminalConsole
from services.tools.cli.spark import selected, spark_session
from services.tools.verify.comparison import compare, snapshots_of
from services.tools.verify.errors import UnpublishedStateError
from services.tools.verify.report import LISTED, counts, differences
from services.tools.verify.sample import KeySample, NamedKeys
from services.tools.verify.snapshots import topic_content
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import active_folder
from spark_app.checkpoint.republish import is_republication_due
from spark_app.lifecycle.published_state import KEY, PublishedState, published_state
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from rich.console import Console

    from contracts import Application
    from services.tools.cli.commands.verify import VerifyOptions
    from services.tools.verify.comparison import ComparisonResult, IsLive, StoredSnapshots
    from services.tools.verify.snapshots import KeyChoice, TopicContent

    OpenSession = Callable[[JobSettings], AbstractContextManager[SparkSession]]

CLOCKS = timedelta(minutes=1)
"""The maximum difference of the clocks of the broker, the checkpoint's file system and this machine."""
PAUSE_S = 1.0
ANSWER_S = 5.0
"""The timeout of the first request to the query service."""


def verify(options: VerifyOptions, open_session: OpenSession = spark_session) -> ExitCode:
    """Compare, and return DIFFERENT for any difference. Raises StateloopError, CommandError.

    The query service is asked first: without it, the state would be read for nothing.
    """
    console = TerminalConsole(highlight=False, soft_wrap=True)
    settings, client = read(JobSettings), read(ClientSettings)
    if not options.no_query:
        asyncio.run(_require_query_service(client))
    require_broker(settings)
    with open_session(settings) as spark:
        each = selected(settings, options.application)
        different = [Verification(spark, application, own, client, options).run(console) for application, own in each]
    return ExitCode.DIFFERENT if any(different) else ExitCode.OK


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
        options: VerifyOptions,
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
        is_live, topic, results = self._is_live(content), content.stored.of(keys), []
        sources = [topic]
        if checkpoint:
            stored = snapshots_of("checkpoint", checkpoint.snapshots).of(keys)
            committed = checkpoint.committed - CLOCKS if checkpoint.committed else None
            results.append(compare(stored, topic, partial(is_published, is_live, checkpoint), committed))
            sources.insert(0, stored)
        if not self._options.no_query:
            results += asyncio.run(self._against_query(sources, keys, is_live))
        _report(console, self._application, checkpoint, len(keys), results)
        return sum(len(result.differences) for result in results)

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
        sources = [self._queried(source) for source in sources]
        async with Client(self._client.url.split(","), token=self._client.secret(None)) as client:
            while True:
                query = await self._query(client, sorted(keys))
                results = [compare(source, query, is_live) for source in sources]
                if not any(result.differences for result in results) or time.monotonic() > deadline:
                    break
                await asyncio.sleep(PAUSE_S)
        if results[-1].newer:  # the topic must have what the query service had a moment ago
            results.append(compare(query, self._queried(self._topic(NamedKeys(keys)).stored), is_live))
        return results

    def _queried(self, stored: StoredSnapshots) -> StoredSnapshots:
        """Return what the query service stores of the windows: all, or only the newest of each key."""
        return stored if self._application.state.is_windowed else stored.newest()

    async def _query(self, client: Client, keys: Sequence[str]) -> StoredSnapshots:
        name, expired = self._application.name, frozenset[str]()
        if self._application.state.is_windowed:
            values = [window.value for key in keys async for window in client.windows(name, key)]
        else:
            answers = await client.get_many(name, keys)
            values = [answer.value for answer in answers if isinstance(answer, Found)]
            expired = frozenset(answer.key for answer in answers if isinstance(answer, Expired))
        return self._queried(snapshots_of("query service", map(Snapshot.model_validate, values), expired))


def is_published(is_live: IsLive, checkpoint: PublishedState, start: datetime) -> bool:
    """Return whether a live window is in the checkpoint: one without its first events is on the topic alone."""
    return is_live(start) and not checkpoint.unpublished_windows.has(start)


def _report(
    console: Console,
    application: Application,
    checkpoint: PublishedState | None,
    keys: int,
    results: list[ComparisonResult],
) -> None:
    console.print(f"[bold]{application.name}[/]: {keys:,} keys", end="")
    if checkpoint:
        console.print(f", batch {checkpoint.commit.batch} of epoch {checkpoint.commit.epoch}", end="")
        for key in sorted(checkpoint.unpublished):
            console.print(
                f"\n{key} has a window that is too large to be published: it is left out", markup=False, end=""
            )
    console.print()
    console.print(counts(results))
    listed = [difference for result in results for difference in result.differences]
    if listed:
        console.print(differences(listed))
    if len(listed) > LISTED:
        console.print(f"and {len(listed) - LISTED:,} more")
