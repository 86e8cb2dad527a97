"""Lists dead letters, or sends them into the loop again."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from aiolimiter import AsyncLimiter

from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from contracts.model.suite import load_suite
from contracts.model.topics import Stamp
from contracts.settings import read
from services.enrichment.settings import ApiSettings
from services.runtime.adapters import loop_time, utc_now
from services.runtime.broker_clock import BrokerClock
from services.runtime.call_thread import CallThread
from services.runtime.command_line import CommandError, ExitCode, printable
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.async_reader import KafkaTopicReader
from services.runtime.kafka.broker_check import require_broker
from services.runtime.kafka.producer import KafkaProducer
from services.runtime.kafka.reader import BlockingKafkaReader
from services.runtime.kafka.values import NEWEST, Partition
from services.runtime.worker.bounded import run_bounded
from services.tools.redrive.dead_letters import NAME, StoredDeadLetter, dead_letters
from services.tools.redrive.redrive import RedriveHandler, RedriveRun
from services.tools.redrive.webhooks import Webhooks

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from contracts import Application, Suite
    from services.runtime.kafka.interfaces import Admin
    from services.tools.redrive.dead_letters import DeadLetterFilter

SHORT_FETCH = {"fetch.wait.max.ms": 10}
"""The options of the reader of origins: it often changes to another partition, which waits for the last fetch."""
LARGEST: dict[str, str | int] = {"message.max.bytes": 64 * 1024 * 1024, "compression.type": "zstd", "batch.size": 1}
"""The options of the producer: a broker may be configured to take larger records than a client sends by default. Its
limit is one of the compressed size, and a record may have been compressed. It refuses a whole batch, so each record has
one of its own."""
BURST_S = 0.01
"""The time whose records may be sent at once: timers are too coarse for a high rate."""
TWICE = (
    "An application that reads the topic counts an event each time that it arrives (deduplicate=False): one that it "
    "has accepted counts twice, so redrive a dead letter only once."
)


def print_counts(selection: DeadLetterFilter, name: str | None) -> None:
    """Print the counts of each application, or of the named one. Raises StateloopError."""
    settings = read(ApiSettings)
    applications = load_suite(settings.application).select(name)
    require_broker(settings)
    for application in applications:
        if len(applications) > 1:
            print(application.name)
        _list(filter(selection.matches, _dead_letters(settings, application)))


def send_back(selection: DeadLetterFilter, name: str | None, *, rate: float, dry_run: bool) -> None:
    """Redrive the dead letters of each application, or of the named one. Raises StateloopError, CommandError."""
    settings = read(ApiSettings)
    suite = load_suite(settings.application)
    applications = suite.select(name)
    try:
        require_broker(settings)
        if selection.has_records and not all(reader.deduplicate for reader in _readers(suite, applications)):
            print(TWICE, file=sys.stderr)
        summary = asyncio.run(_redrive(settings, applications, selection, rate=rate, dry_run=dry_run))
    except KeyboardInterrupt as stopped:
        text = "stopped; the next one begins with the first dead letter again"
        raise CommandError(text, ExitCode.INTERRUPTED) from stopped
    print(summary + (" (dry run)" if dry_run else ""))


def _readers(suite: Suite, applications: Sequence[Application]) -> list[Application]:
    """Return the applications that read the events of these again, also those that are not among them."""
    topics = {application.topics.events for application in applications}
    return [application for application in suite.applications if application.topics.events in topics]


def _dead_letters(settings: ApiSettings, application: Application) -> Iterator[StoredDeadLetter]:
    return dead_letters(settings.client(), application.topics.dead_letters)


def _list(chosen: Iterable[StoredDeadLetter]) -> None:
    """Print the counts of one application, by group. A dead letter that was written twice counts once."""
    groups: Counter[tuple[str, str, str]] = Counter()
    latest: dict[tuple[str, str, str], StoredDeadLetter] = {}
    origins: set[Hashable] = set()
    for stored in chosen:
        letter = stored.dead_letter
        group = ("unreadable", "", "") if letter is None else (letter.reason, letter.enrichment or "", letter.topic)
        if stored.origin is None or stored.origin not in origins:
            groups[group] += 1
            origins.add(stored.origin)
        latest[group] = max(stored, latest.get(group, stored), key=lambda each: each.written)
    for group, count in groups.most_common():
        stored = latest[group]
        detail = (stored.dead_letter and stored.dead_letter.detail) or ""
        line = f"{count:>9,}  {' '.join(filter(None, group))}  last {stored.written:%Y-%m-%dT%H:%M:%SZ}  {detail}"
        print(printable(line))
    print(f"{groups.total():>9,}  in all")


async def _redrive(
    settings: ApiSettings,
    applications: Sequence[Application],
    selection: DeadLetterFilter,
    *,
    rate: float,
    dry_run: bool,
) -> str:
    """Redrive one application after the other, and return the counts in words.

    A record that several of the applications refused is sent once.
    """
    client = settings.client()
    async with AsyncExitStack() as stack:
        reader = KafkaTopicReader(BlockingKafkaReader(client, NAME))
        origins = KafkaTopicReader(BlockingKafkaReader(client, NAME, options=SHORT_FETCH))
        producer = KafkaProducer(client, NAME, options=LARGEST, log=None)
        for kafka_client in (reader, origins, producer):
            stack.push_async_callback(kafka_client.close)
        admin, thread, broker_clock = KafkaAdmin(client, NAME), CallThread("newest"), BrokerClock(loop_time)
        stack.callback(thread.close)
        stack.callback(admin.close)
        broker_clock.note(await thread.call(partial(newest_input_ms, admin, applications)))
        pace = limiter(rate).acquire
        redriven = RedriveRun(origins, producer, utc_now, broker_clock, pace, _report, is_dry_run=dry_run)
        for application in applications:
            handler = RedriveHandler(application, selection, redriven, Webhooks(settings, application, stack))
            await run_bounded(handler, reader, application.topics.dead_letters, Counts(CATALOGUE))
        return redriven.summary


def newest_input_ms(admin: Admin, applications: Sequence[Application]) -> int:
    """Return the latest timestamp of the broker in the inputs, which have the heartbeats of the job; -1 without one.

    Raises KafkaRequestError.
    """
    stamped = {topic.name for each in applications for topic in each.catalogue() if topic.stamp is Stamp.BROKER}
    inputs = {name for each in applications for name in (each.topics.events, each.topics.feedback)}
    counts = admin.partition_counts(stamped & inputs)
    places = [Partition(topic, number) for topic, count in counts.items() for number in range(count)]
    newest = admin.records(dict.fromkeys(places, NEWEST))
    return max((record.timestamp_ms for record in newest.values()), default=-1)


def limiter(rate: float) -> AsyncLimiter:
    """Return a limit of records a second."""
    burst = max(1.0, rate * BURST_S)
    return AsyncLimiter(burst, burst / rate)


def _report(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
