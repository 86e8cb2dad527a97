"""Lists dead letters, or sends them into the loop again."""

from __future__ import annotations

import sys
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contracts.model.suite import load_suite
from contracts.settings import read
from services.enrichment.redelivery import Redelivery
from services.enrichment.settings import ApiSettings
from services.runtime.command_line import CommandError, ExitCode
from services.runtime.kafka.blocking import BlockingKafkaProducer
from services.runtime.kafka.broker_check import require_broker
from services.runtime.kafka.reader import BlockingKafkaReader
from services.tools.redrive.action import RedriveAction
from services.tools.redrive.dead_letters import NAME, StoredDeadLetter, dead_letters
from services.tools.redrive.deliverer import NoDeliverer, WebhookDeliverer
from services.tools.redrive.origins import SHORT_FETCH, Origins
from services.tools.redrive.rate_limiter import RateLimiter
from services.tools.redrive.redrive import Redrive
from services.tools.redrive.writer import LARGEST, KafkaWriter, NoWriter

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from contracts import Application
    from services.tools.redrive.dead_letters import Selection

REPORT_EVERY_S = 1.0
TWICE = "An application counts an event each time that it arrives (deduplicate=False): redrive a dead letter only once."


def print_counts(selection: Selection, name: str | None) -> None:
    """Print the counts of each application, or of the named one. Raises StateloopError."""
    settings = read(ApiSettings)
    applications = load_suite(settings.application).select(name)
    require_broker(settings)
    for one in applications:
        if len(applications) > 1:
            print(one.name)
        _list(filter(selection.matches, _dead_letters(settings, one)))


def send_back(selection: Selection, name: str | None, *, rate: float, dry_run: bool) -> None:
    """Redrive the dead letters of each application, or of the named one. Raises StateloopError, CommandError."""
    settings = read(ApiSettings)
    applications = load_suite(settings.application).select(name)
    try:
        counts = _redrive(settings, applications, selection, rate=rate, dry_run=dry_run)
    except KeyboardInterrupt as stopped:
        text = "stopped; the next one begins with the first dead letter again"
        raise CommandError(text, ExitCode.INTERRUPTED) from stopped
    print(summary(counts) + (" (dry run)" if dry_run else ""))


def _dead_letters(settings: ApiSettings, application: Application) -> Iterator[StoredDeadLetter]:
    return dead_letters(settings.client(), application.topics.dead_letters)


def _list(chosen: Iterable[StoredDeadLetter]) -> None:
    """Print the counts of one application, by group. A dead letter that was written twice counts once."""
    groups: Counter[tuple[str, str, str]] = Counter()
    latest: dict[tuple[str, str, str], StoredDeadLetter] = {}
    origins: set[Hashable] = set()
    for found in chosen:
        one = found.dead_letter
        group = ("unreadable", "", "") if one is None else (one.reason, one.enrichment or "", one.topic)
        if found.origin is None or found.origin not in origins:
            groups[group] += 1
            origins.add(found.origin)
        latest[group] = max(found, latest.get(group, found), key=lambda each: each.written)
    for group, count in groups.most_common():
        found = latest[group]
        detail = found.dead_letter.detail if found.dead_letter else None
        print(f"{count:>9,}  {' '.join(filter(None, group))}  last {found.written:%Y-%m-%dT%H:%M:%SZ}  {detail or ''}")
    print(f"{groups.total():>9,}  in all")


def _redrive(
    settings: ApiSettings, applications: Sequence[Application], selected: Selection, *, rate: float, dry_run: bool
) -> Counter[RedriveAction]:
    """Redrive one application after the other. A record that several of them refused is sent once."""
    require_broker(settings)
    client = settings.client()
    origins = Origins(BlockingKafkaReader(client, NAME, options=SHORT_FETCH))
    writer = NoWriter() if dry_run else KafkaWriter(BlockingKafkaProducer(client, NAME, options=LARGEST))
    if selected.has_records and not all(one.deduplicate for one in applications):
        print(TWICE, file=sys.stderr)
    pace = RateLimiter(float("inf") if dry_run else rate, time.monotonic, time.sleep)
    counts, sent, report = Counter[RedriveAction](), set[str](), ProgressReport()
    try:
        for one in applications:
            chosen = filter(selected.matches, _dead_letters(settings, one))
            with Redelivery(settings, one) as redelivery:
                deliverer = NoDeliverer(redelivery) if dry_run else WebhookDeliverer(redelivery, _report)
                redrive = Redrive(one, origins, writer, deliverer, lambda: datetime.now(UTC), pace, report, sent)
                counts += redrive.run(chosen)
        writer.close()
    finally:
        origins.close()
    return counts


def _report(refusal: str) -> None:
    print(refusal, file=sys.stderr, flush=True)


class ProgressReport:
    """Prints the counts once a second."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, counts: Counter[RedriveAction]) -> None:
        """Print the counts, unless they were printed less than a second ago."""
        if time.monotonic() - self._last >= REPORT_EVERY_S:
            self._last = time.monotonic()
            print(summary(counts), file=sys.stderr, flush=True)


def summary(counts: Counter[RedriveAction]) -> str:
    """Return the counts in words."""
    return f"{counts.total():,} dead letters" + "".join(
        f", {count:,} {action.value}" for action, count in counts.most_common()
    )
