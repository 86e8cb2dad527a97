"""The README's application: a ride through decode, fold and plan, with the city's answers made up here."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from contracts import Batch
from contracts.planning.plan import plan
from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import Record, RecordError, timestamp_ms
from contracts.wire import Feedback
from examples.scooters.application import Ping, app

NOW = datetime(2026, 5, 1, 8, tzinfo=UTC)
CITY: dict[str, dict[str, Any]] = {
    "/reverse": {"street": "Oak Street", "district": "North"},
    "/districts/{district}/rules": {"limit_kmh": 20.0},
}


class City:
    """Answers as the city would."""

    async def get(self, path: str, model: type[BaseModel], /, **_: str | float) -> Any:
        return model.model_validate(CITY[path])

    async def get_one(self, batch: Batch[Any], _: str | int) -> Any:
        raise NotImplementedError


def record(value: bytes) -> Record:
    return Record("", 0, 0, timestamp_ms(NOW), b"s1", value)


def ping(number: int, **fields: float) -> Record:
    event = Ping(device_id="s1", event_id=str(number), first_seen=NOW, ts=NOW + timedelta(seconds=number), **fields)
    return record(orjson.dumps(event.model_dump(exclude_none=True)))


async def test_a_ride_is_enriched_in_two_steps() -> None:
    decoder, fold = Decoder(app), Fold(app)
    pings = ping(1, speed=12.0), ping(2, speed=18.0, lat=52.5, lon=13.4)
    _, snapshot = [fold.add(delta) for one in pings for delta in decoder.event(one)]
    requested = []
    while snapshot and (requests := plan(app, snapshot, NOW)):
        (request,) = requests
        one = app.by_name[request.enrichment]
        inputs = {
            need.name: need.annotation.model_validate(given) if isinstance(given, dict) else given
            for need, given in ((need, request.inputs[need.name]) for need in one.needs)
        }
        result = await one(City(), **inputs)
        requested.append(one.name)
        answer = Feedback(
            device_id="s1",
            first_seen=NOW,
            enrichment=one.name,
            version=request.version,
            status="result",
            ts=NOW,
            fingerprint=request.fingerprint,
            result={one.name: result.model_dump()},
        )
        snapshot = fold.add(decoder.feedback(record(answer.encode())))
    assert snapshot is not None
    assert requested == ["place", "rule"]
    assert snapshot.version == 4
    assert (snapshot.state["pings"], snapshot.state["fastest"], snapshot.state["mean_speed"]) == (2, 18.0, 15.0)
    assert snapshot.enrichments["rule"].result == {"limit_kmh": 20.0}


def test_a_negative_speed_is_refused() -> None:
    bad = ping(1, speed=1.0).value or b""
    with pytest.raises(RecordError, match="invalid_field: speed"):
        Decoder(app).event(record(bad.replace(b"1.0", b"-1.0")))
