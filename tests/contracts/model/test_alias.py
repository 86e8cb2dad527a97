"""Renamed fields of a state: answers keep their first names."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import orjson
import pytest
from pydantic import BaseModel

from contracts import Api, Application, DeclarationError, Enriched, Event, Latest, State, enrichment
from contracts.planning.plan import plan
from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import Record, timestamp_ms
from contracts.wire import Snapshot, decode_snapshot
from services.enrichment.calls.caller import Outcome
from services.enrichment.feedback import failed_request, feedback
from services.tools.redrive.action import RedriveAction, action_for, reopening
from services.tools.redrive.dead_letters import StoredDeadLetter

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNER, STREET = {"name": "Ann"}, {"street": "Main Street"}


class Seen(Event):
    plate: str | None = None


class Owner(BaseModel):
    name: str


class Street(BaseModel):
    street: str


class First(State):
    plate: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]
    street: Annotated[Street | None, Enriched()]


class Renamed(State):
    registration: Annotated[str | None, Latest(of="plate", alias="plate")]
    keeper: Annotated[Owner | None, Enriched(alias="owner")]
    street: Annotated[Street | None, Enriched()]


def first() -> Application:
    @enrichment(api="registry")
    async def owner(api: Api, plate: str) -> Owner:
        return await api.get("/owners/{plate}", Owner, plate=plate)

    @enrichment(api="registry")
    async def street(api: Api, owner: Owner) -> Street:
        return await api.get("/streets", Street, name=owner.name)

    return Application(name="machines", event=Seen, state=First, enrichments=(owner, street))


def renamed() -> Application:
    @enrichment(api="registry")
    async def keeper(api: Api, registration: str) -> Owner:
        return await api.get("/owners/{plate}", Owner, plate=registration)

    @enrichment(api="registry")
    async def street(api: Api, keeper: Owner) -> Street:
        return await api.get("/streets", Street, name=keeper.name)

    return Application(name="machines", event=Seen, state=Renamed, enrichments=(keeper, street))


def records(*applications: Application) -> list[Record]:
    """An event, and the feedback of workers of these applications to it, one after the other."""
    event = {"device_id": "m", "event_id": "1", "first_seen": NOW.isoformat(), "ts": NOW.isoformat(), "plate": "P"}
    written = [Record("events", 0, 0, timestamp_ms(NOW), b"m", orjson.dumps(event))]
    results = {"owner": OWNER, "keeper": OWNER, "street": STREET}
    for application in applications:
        (request,) = plan(application, folded(application, written), NOW)
        answer = feedback(request, Outcome("result", results[request.enrichment]), NOW)
        written.append(Record("feedback", 0, len(written), timestamp_ms(NOW), b"m", answer.encode()))
    return written


def folded(application: Application, written: list[Record]) -> Snapshot:
    """The state that these records give."""
    decoder, fold = Decoder(application, clock=lambda: NOW), Fold(application)
    last = None
    for record in written:
        deltas = decoder.event(record) if record.topic == "events" else (decoder.feedback(record),)
        for delta in deltas:
            last = fold.add(delta)
    assert last is not None
    return decode_snapshot(last.encode())


def test_a_renamed_enrichment_has_the_answers_of_its_first_name() -> None:
    snapshot = folded(renamed(), records(first(), first()))
    assert snapshot.state == {"registration": "P"}
    assert {name: answer.result for name, answer in snapshot.enrichments.items()} == {"keeper": OWNER, "street": STREET}
    assert plan(renamed(), snapshot, NOW) == []


def test_the_first_application_has_the_answers_of_the_renamed_one() -> None:
    """So a release can be rolled back."""
    snapshot = folded(first(), records(renamed(), renamed()))
    assert {name: answer.result for name, answer in snapshot.enrichments.items()} == {"owner": OWNER, "street": STREET}
    assert plan(first(), snapshot, NOW) == []


def test_the_fingerprint_of_inputs_is_that_of_the_first_names() -> None:
    (now,), (then,) = (plan(application, folded(application, records()), NOW) for application in (renamed(), first()))
    assert (now.enrichment, now.fingerprint) == ("keeper", then.fingerprint)


def test_a_failed_request_has_the_first_name_and_can_be_redriven() -> None:
    """With the application before and after the change."""
    now = datetime.now(UTC)
    (request,) = plan(renamed(), folded(renamed(), records()), NOW)
    record = Record("snapshots", 0, 0, 0, b"m", b"{}")
    dead_letter = failed_request(record, request, Outcome("failure", reason="down"), now)
    dead_letter = dead_letter.model_copy(update={"first_seen": now - timedelta(minutes=1)})
    stored = StoredDeadLetter(dead_letter, b"m", now)
    assert dead_letter.enrichment == "owner"
    assert {action_for(application, stored, now) for application in (first(), renamed())} == {
        RedriveAction.REQUESTED_AGAIN
    }
    answer = Record("feedback", 0, 0, timestamp_ms(now), b"m", reopening(renamed(), stored, now).encode())
    assert Decoder(renamed()).feedback(answer).slot == "keeper"


@pytest.mark.parametrize("alias", ["street", "registration"])
def test_the_name_of_another_field_is_no_alias(alias: str) -> None:
    class Wrong(Renamed):
        keeper: Annotated[Owner | None, Enriched(alias=alias)]

    with pytest.raises(DeclarationError, match="is the name of another field"):
        Application(name="machines", event=Seen, state=Wrong, enrichments=renamed().enrichments)


def test_two_fields_have_no_alias_in_common() -> None:
    class Twice(Renamed):
        keeper: Annotated[Owner | None, Enriched(alias="plate")]

    with pytest.raises(DeclarationError, match="is the name of another field"):
        Application(name="machines", event=Seen, state=Twice, enrichments=renamed().enrichments)
