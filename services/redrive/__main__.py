"""Lists dead letters, or brings them back into the loop: `stateloop redrive list|back`."""

from __future__ import annotations

import sys
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contracts.errors import StateloopError
from contracts.model.application import load
from contracts.settings import read
from services.redrive.arguments import arguments, choice
from services.redrive.letters import Found, letters
from services.redrive.origins import Origins
from services.redrive.pace import Pace
from services.redrive.redrive import Redrive
from services.redrive.settings import RedriveSettings
from services.redrive.writer import KafkaWriter, NoWriter

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from contracts import Application
    from services.redrive.way import Way

TOLD_EVERY_S = 1.0
TWICE = (
    "This application counts an event twice that comes twice (deduplicate=False): bring no letter back a second time."
)


def main(given: Sequence[str]) -> int:
    """Do it: 0. Or return 1 after a line that says what to do."""
    asked = arguments(given)
    try:
        settings = read(RedriveSettings)
        application = load(settings.application)
        chosen = filter(choice(asked).takes, letters(settings.client(), application.topics.dead_letters))
        if asked.command == "list":
            _list(chosen)
        else:
            _back(asked, settings, application, chosen)
    except StateloopError as error:
        print(f"stateloop redrive: {error}", file=sys.stderr)
        return 1
    return 0


def _list(chosen: Iterator[Found]) -> None:
    groups: Counter[tuple[str, str, str]] = Counter()
    latest: dict[tuple[str, str, str], Found] = {}
    for found in chosen:
        one = found.letter
        group = ("unreadable", "", "") if one is None else (one.reason, one.enrichment or "", one.topic)
        groups[group] += 1
        latest[group] = max(found, latest.get(group, found), key=lambda each: each.written)
    for group, count in groups.most_common():
        found = latest[group]
        detail = found.letter.detail if found.letter else None
        print(f"{count:>9,}  {' '.join(filter(None, group))}  last {found.written:%Y-%m-%dT%H:%M:%SZ}  {detail or ''}")
    print(f"{groups.total():>9,}  in all")


def _back(asked: Namespace, settings: RedriveSettings, application: Application, chosen: Iterator[Found]) -> None:
    client = settings.client()
    origins, writer = Origins(client), NoWriter() if asked.dry_run else KafkaWriter(client)
    if not application.deduplicate:
        print(TWICE, file=sys.stderr)
    pace = Pace(float("inf") if asked.dry_run else asked.rate, time.monotonic, time.sleep)
    try:
        counts = Redrive(application, origins, writer, lambda: datetime.now(UTC), pace, Progress()).run(chosen)
        writer.close()
    finally:
        origins.close()
    print(told(counts) + (" (a dry run: nothing was done)" if asked.dry_run else ""))


class Progress:
    """Tells how far it is, once a second."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, counts: Counter[Way]) -> None:
        """Tell, if it is time."""
        if time.monotonic() - self._last >= TOLD_EVERY_S:
            self._last = time.monotonic()
            print(told(counts), file=sys.stderr, flush=True)


def told(counts: Counter[Way]) -> str:
    """The counts in words."""
    return f"{counts.total():,} letters" + "".join(f", {count:,} {way.value}" for way, count in counts.most_common())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
