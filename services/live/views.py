"""The view's loop: reads the topics, and gives a view every so often."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from services.live.lag import GroupLag
from services.live.surroundings import Surroundings, calls, parts
from services.live.tail import Tail
from services.live.watch import Watch

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from contracts import Application
    from services.live.settings import LiveSettings
    from services.live.view import View

READ_S = 0.05
LOOK_S = 1.0


def views(
    settings: LiveSettings, application: Application, stopping: threading.Event, every_s: float
) -> Iterator[View]:
    """A view every so many seconds until `stopping` is set; waits for the topics if need be."""
    topics = application.topics
    names = (topics.events, topics.feedback, topics.snapshots, topics.dead_letters)
    watch = Watch(application, settings, time.monotonic())
    waiting = Surroundings(trouble=f"Waiting for the topics on {settings.kafka}")
    with Tail(settings.client(), names, topics.snapshots, settings.history) as tail:
        while not tail.open():
            yield watch.view(time.monotonic(), datetime.now(UTC), waiting)
            if stopping.wait(LOOK_S):
                return
        group = settings.group or application.enrichment_group
        with GroupLag(settings.client(), group, topics.snapshots, tail.partitions) as lag:
            view_at = 0.0
            while not stopping.is_set():
                read(tail, watch)
                if time.monotonic() >= view_at:
                    view_at = time.monotonic() + every_s
                    now = datetime.now(UTC)
                    around = Surroundings(lag.lag(tail.ends()), calls(settings.logs, now), parts(settings.status))
                    yield watch.view(time.monotonic(), now, around)


def read(tail: Tail, watch: Watch) -> None:
    """Take what has arrived."""
    for record, is_old in tail.read(READ_S):
        if is_old:
            watch.old(record, time.monotonic())
        else:
            watch.take(record, time.monotonic(), datetime.now(UTC))
