"""Judges the deliveries of alerts to their webhook: each event of the topic at least once, and in its order."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson

from contracts.records.record import Reason
from contracts.wire import DeadLetter
from tests.simulation.application import HEAVY
from tests.simulation.script import ENDS_S, time_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from contracts import Application
    from contracts.records.record import Record
    from tests.simulation.api import Delivery
    from tests.simulation.recorded import Ledgers

    Event = tuple[str, str]
    """The id of an alert, and whether it has opened or closed."""

DELIVERED = timedelta(seconds=60)
"""The time within which an event is delivered when no fault is left."""


def delivery_problems(
    ledgers: Ledgers, application: Application, repeats: int, redriven_at: float | None
) -> Iterator[str]:
    """Return what is wrong with the deliveries. An event may be delivered so often.

    `redriven_at` is when a redrive began while the webhook worked, and until the end.
    """
    records = ledgers.records[application.topics.derived(HEAVY.name)]
    letters = ledgers.records[application.topics.dead_letters]
    failed = _failed(letters)
    accepted: Counter[Event] = Counter()
    yield from _sent(ledgers.deliveries, _events(records), failed, accepted)
    for event, count in accepted.items():
        if count > repeats:
            yield f"{event} was delivered {count} times, and {repeats} are explained"
    if redriven_at is not None:
        for event in _failed(record for record in letters if record.timestamp < time_at(redriven_at)):
            if not accepted[event]:
                yield f"{event} was not delivered by a redrive"
    early = [record for record in records if record.timestamp < time_at(ENDS_S) - DELIVERED]
    for event in _events(early):
        if not accepted[event] and event not in failed:
            yield f"{event} was not delivered"


def _sent(
    deliveries: Iterable[Delivery],
    events: Mapping[Event, list[dict[str, Any]]],
    failed: set[Event],
    accepted: Counter[Event],
) -> Iterator[str]:
    """Count what was accepted. Each delivery is true, has the key of its event, and the alert was opened before."""
    keys: dict[str, Event] = {}
    for delivery in deliveries:
        content = orjson.loads(delivery.content)
        event, opened = (content["id"], content["event"]), (content["id"], "opened")
        if content not in events.get(event, ()):
            yield f"{content} was sent, and no record has it"
        if keys.setdefault(delivery.key, event) != event:
            yield f"{event} was sent with the key of {keys[delivery.key]}"
        if event != opened and not accepted[opened] and opened not in failed:
            yield f"{event} was sent before it was opened"
        accepted[event] += delivery.is_accepted
    if len(set(keys.values())) < len(keys):
        yield "an event was sent with several keys"


def _events(records: Iterable[Record]) -> Mapping[Event, list[dict[str, Any]]]:
    """Return the events of records of alerts, as they are sent."""
    found: dict[Event, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        values = orjson.loads(record.value or b"")
        window = {name: values[name] for name in ("device_id", "first_seen", "epoch", "version", "as_of")}
        for alert in values["alerts"]:
            if alert["id"] in values["changed"]:
                event = {"open": "opened", "closed": "closed"}[alert["status"]]
                facts = {name: value for name, value in alert.items() if name != "status"}
                found[alert["id"], event].append({"event": event, "alerts": HEAVY.name, **window, **facts})
    return found


def _failed(letters: Iterable[Record]) -> set[Event]:
    """Return the events that have a dead letter."""
    found = [DeadLetter.model_validate_json(record.value or b"") for record in letters]
    details = [letter.detail or "" for letter in found if letter.reason == Reason.DELIVERY_FAILED]
    return {(name, event) for event, name in (detail.split()[-2:] for detail in details)}
