from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import orjson
from pydantic import BaseModel

from contracts import Api, Application, Count, Enriched, Event, Latest, State, enrichment
from contracts.planning.fingerprint import fingerprint
from contracts.records.record import Record
from contracts.wire import Answer, DeadLetter, Feedback, Snapshot
from services.live.figures import Quantiles
from services.live.settings import LiveSettings
from services.live.surroundings import Surroundings
from services.live.view import Mark
from services.live.watch import Watch

TIME = datetime(2026, 1, 1, tzinfo=UTC)


class Ping(Event):
    plate: str | None = None


class Owner(BaseModel):
    name: str


class Car(State):
    pings: Annotated[int, Count()]
    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]


@enrichment(api="registry")
async def owner(api: Api, plate: str) -> Owner:
    return await api.get("/owners/{plate}", Owner, plate=plate)


APP = Application(name="cars", event=Ping, state=Car, enrichments=(owner,))
SETTINGS = LiveSettings(application="tests:cars")


class Seen:
    """A watch, fed with records at given seconds."""

    def __init__(self) -> None:
        self.watch = Watch(APP, SETTINGS, 0.0)

    def take(self, topic: str, value: bytes, at: float) -> None:
        record = Record(topic, 0, 0, TIME, b"car", value)
        self.watch.take(record, at, TIME + timedelta(seconds=at))

    def event(self, at: float, name: str, **own: Any) -> None:
        facts = {"device_id": "car", "event_id": name, "first_seen": TIME.isoformat(), "ts": TIME.isoformat(), **own}
        self.take("events", orjson.dumps(facts), at)

    def snapshot(self, at: float, version: int, plate: str | None, answer: Answer | None = None) -> Snapshot:
        answers = {"owner": answer} if answer else {}
        state = {"pings": version, "plate": plate}
        made = Snapshot(device_id="car", first_seen=TIME, version=version, as_of=TIME, state=state, enrichments=answers)
        self.take("snapshots", made.encode(), at)
        return made

    def answer(self, at: float, to: Snapshot) -> Answer:
        named = fingerprint(owner, {"plate": to.state["plate"]})
        found = Answer(version=to.version, status="result", ts=TIME, fingerprint=named, result={"name": "Ann"})
        facts = found.model_dump() | {"result": {"owner": found.result}}
        self.take("feedback", Feedback(device_id="car", first_seen=TIME, enrichment="owner", **facts).encode(), at)
        return found


def test_a_loop_from_event_to_enriched() -> None:
    seen = Seen()
    seen.event(1.0, "a", plate="X")
    snapshot = seen.snapshot(1.25, 1, "X")
    half = seen.watch.view(1.5, TIME, Surroundings())
    assert (half.to_snapshot, half.to_enriched) == (Quantiles(1, 0.25, 0.25), None)
    answer = seen.answer(2.0, snapshot)
    seen.snapshot(3.0, 2, "X", answer)
    view = seen.watch.view(4.0, TIME, Surroundings(worker_lag=5))
    assert view.to_snapshot == Quantiles(2, 0.25, 1.0)
    assert view.to_enriched == Quantiles(1, 2.0, 2.0)
    assert view.totals == {"events": 1, "snapshots": 2, "result": 1, "absence": 0, "failure": 0, "skipped": 0}
    assert (view.events, view.feedback["result"], view.job_lag, view.worker_lag) == (0.25, 0.25, 0, 5)
    (device,) = view.devices
    assert (device.fields, device.marks) == ({"pings": "2", "plate": "X"}, {"owner": Mark.RESULT})
    assert device.settled


def test_a_republished_snapshot_changes_nothing_but_the_count() -> None:
    seen = Seen()
    seen.event(1.0, "a")
    seen.event(1.5, "b")
    for at, version in ((2.0, 1), (3.0, 2), (8.0, 1), (8.0, 2)):
        seen.snapshot(at, version, None)
    view = seen.watch.view(9.0, TIME, Surroundings())
    assert view.to_snapshot == Quantiles(2, 1.0, 1.5)
    assert view.totals["snapshots"] == 4
    assert view.devices[0].version == 2


def test_what_the_job_refuses_waits_for_no_snapshot() -> None:
    seen = Seen()
    seen.take("events", b"{", 1.0)
    seen.event(1.0, "a", ts=(TIME + timedelta(days=1)).isoformat())
    seen.take("feedback", b"[]", 1.0)
    seen.take("snapshots", b"null", 1.0)
    letter = DeadLetter(reason="malformed", topic="events", partition=0, offset=0, timestamp=TIME)
    seen.take("dead_letters", letter.encode(), 2.0)
    seen.take("dead_letters", b"?", 2.0)
    view = seen.watch.view(3.0, TIME, Surroundings())
    assert (view.totals["events"], view.job_lag) == (2, 0)
    assert view.dead_letters == {"malformed": 1, "unreadable": 1}
    assert view.devices == ()


def test_an_old_snapshot_is_shown_and_not_counted() -> None:
    seen = Seen()
    old = Snapshot(device_id="car", first_seen=TIME, version=4, as_of=TIME, state={"pings": 4})
    seen.watch.old(Record("snapshots", 0, 0, TIME, b"car", old.encode()), 0.5)
    view = seen.watch.view(1.0, TIME, Surroundings())
    assert view.totals["snapshots"] == 0
    assert [device.version for device in view.devices] == [4]
