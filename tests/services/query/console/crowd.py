"""A loop with many APIs, workers and enrichments, all with long names."""

from datetime import UTC, datetime, timedelta
from types import new_class
from typing import Annotated, Any

from pydantic import BaseModel

from contracts import Api, Application, Enriched, Event, Latest, Policy, State, Suite, Topics, enrichment
from contracts.api.loop import StateStatus
from contracts.metrics import worker
from contracts.model.enrichment import Enrichment
from services.query.console.observation import Observation
from services.query.console.scrape import ScrapeResult, ScrapeTarget, parse_result
from tests.services.query.console.exposed import Exposed, exposed
from tests.services.query.console.observations import away, job_of

APIS = tuple(f"api-number-{number:02}-of-the-department-of-long-names" for number in range(14))
NAMES = tuple(f"enrichment_{number:02}_with_a_name_that_is_too_long" for number in range(14))
WORKERS = tuple(
    ScrapeTarget("enrichment", f"http://worker-{number}.stateloop.svc.cluster.local:9101") for number in range(24)
)
APPLICATION = "vehicles-of-the-whole-world"
LONG = "fleet/europe-west/customer-000000000000017/vehicle-WBA3A5C50CF256985/trip/2013-01-01T05:00:00.000Z/"
LARGE = 41_234_567.0


class Sighting(Event):
    """An observation of a vehicle."""

    registration_number_of_the_vehicle: str | None = None


class Answer(BaseModel):
    """The result of an API."""

    found: str


def enriched(name: str, api: str) -> Enrichment:
    """Return an enrichment of this name."""

    async def function(api: Api, registration_number_of_the_vehicle: str) -> Answer:
        return await api.get("/", Answer, of=registration_number_of_the_vehicle)

    function.__name__ = name
    return enrichment(api=api)(function)


def crowded(name: str, prefix: str = "") -> Application:
    """Return an application of this name."""
    fields: dict[str, Any] = {"registration_number_of_the_vehicle": Annotated[str | None, Latest()]}
    fields |= {name: Annotated[Answer | None, Enriched()] for name in NAMES}
    state = new_class("Vehicle", (State,), {"lifetime": timedelta(hours=1)}, lambda space: space.update(_body(fields)))
    return Application(
        name=name,
        event=Sighting,
        state=state,
        enrichments=tuple(enriched(name, api) for name, api in zip(NAMES, APIS, strict=True)),
        apis={api: Policy() for api in APIS},
        topics=Topics(prefix),
    )


def _body(fields: dict[str, Any]) -> dict[str, Any]:
    return {"__annotations__": fields, "__module__": __name__}


SUITE = Suite(crowded(APPLICATION), crowded("flights", "flights_"))


def crowd(at: float, *, down: tuple[str, ...] = (), unreachable: tuple[ScrapeTarget, ...] = ()) -> Observation:
    """Return the loop at a time; some APIs are down, and some workers unreachable."""
    counted = LARGE + 41_234 * at
    end_offsets = {name: {0: round(counted)} for name in ("events", "feedback", "snapshots")}
    end_offsets["dead_letters"] = {0: round(LARGE)}
    workers = (away(one) if one in unreachable else _worker(one, at, down) for one in WORKERS)
    states = (StateStatus(name=APPLICATION, topic="topic", roles={"owner": 640}, lag=12 * 345_678, unowned=0),)
    clock = datetime.now(UTC)
    job = job_of(**{APPLICATION: {"events": counted, "keys": LARGE, "lag": LARGE, "committed_at": clock.timestamp()}})
    return Observation(at, clock, (job, *workers), end_offsets, states, tuple(f"query-{number}" for number in range(8)))


def _worker(target: ScrapeTarget, at: float, down: tuple[str, ...]) -> ScrapeResult:
    counted = LARGE + 2_000 * at
    pairs = tuple(zip(APIS, NAMES, strict=True))
    statuses = ("result", "absence", "failure", "skipped")
    metrics: Exposed = {
        worker.CALLS: {(api, name, "retryable"): counted for api, name in pairs},
        worker.ANSWERS: {(name, status): LARGE for name in NAMES for status in statuses},
        worker.BREAKER: {(api,): 2.0 * (api in down) for api in APIS},
        worker.QUEUED: {(api,): 123_456.0 * (api in down) for api in APIS},
        worker.LAG: {(): 120_345.0},
    }
    seconds = {worker.CALL_SECONDS: {api: [0.3] * round(3 * at + 1) for api in APIS}}
    return parse_result(target, exposed(metrics, seconds))
