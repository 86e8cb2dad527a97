"""Alerts with a webhook, and their records, on topics of one test."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from contracts import AlertRule, Alerts, Application, Breaker, Policy, Table, Topics, Webhook
from contracts.wire.alert_record import Alert, AlertRecord
from tests.services.derive.alerted import Reading, Sensor

if TYPE_CHECKING:
    from contracts.wire import Snapshot

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MOMENT = timedelta(milliseconds=10)
PATIENT = Policy(
    timeout=timedelta(seconds=5),
    attempts=1000,
    backoff=MOMENT,
    max_backoff=5 * MOMENT,
    concurrency=8,
    breaker=Breaker(open_for=10 * MOMENT),
)


class Limit(AlertRule):
    """Alerts open above it."""

    high: int


def above(snapshot: Snapshot, limit: Limit) -> bool:
    return int(snapshot.state["value"]) > limit.high


LIMITS = Table("limits", Limit)
WEBHOOK = Webhook("pager", "/hooks", PATIENT)


def application(webhook: Webhook = WEBHOOK) -> Application:
    """The application, with this webhook."""
    return Application(
        name="sensors",
        event=Reading,
        state=Sensor,
        deduplicate=False,
        topics=Topics(prefix=os.environ.get("ALERTED_PREFIX", "")),
        tables=(LIMITS,),
        alerts=(Alerts("too_high", LIMITS, above, webhook=webhook),),
    )


APP = application()


def crossing(device: str, version: int) -> tuple[AlertRecord, AlertRecord]:
    """The record that opens an alert of this device, and the one that closes it."""
    at = NOON + timedelta(seconds=version)
    alert = Alert(
        id=f"too_high/{device}@{NOON.isoformat()}/high/3/0.{version}",
        rule="high",
        rule_version=3,
        status="open",
        since=at,
        opened_at=at,
    )
    opened = AlertRecord(
        device_id=device,
        first_seen=NOON,
        version=version,
        as_of=at,
        offset=version,
        status="open",
        alerts=(alert,),
        changed=(alert.id,),
    )
    closed = alert.model_copy(update={"status": "closed", "closed_at": at, "closed_by": "condition"})
    return opened, opened.model_copy(update={"version": version + 1, "status": "closed", "alerts": (closed,)})


def crossings(devices: int, versions: tuple[int, ...] = (1, 3)) -> list[AlertRecord]:
    """The records of several alerts of each device, in the order of the devices and not of their alerts."""
    return [
        record
        for version in versions
        for at in (0, 1)
        for number in range(devices)
        for record in (crossing(f"sensor-{number}", version)[at],)
    ]
