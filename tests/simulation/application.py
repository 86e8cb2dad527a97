"""The applications that the simulator runs.

They have enrichments that need each other, an aggregate, or their own result, that are refreshed or conditional, calls
for several keys, alerts by rules, and derived states.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel

from contracts import (
    AlertRule,
    Alerts,
    Api,
    Application,
    Batch,
    Budget,
    Cache,
    Count,
    Derived,
    Emit,
    Enriched,
    Enrichment,
    Event,
    Latest,
    Policy,
    Quantize,
    State,
    Sum,
    Table,
    Topics,
    Webhook,
    enrichment,
)
from contracts.model.condition import condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contracts.wire import Snapshot
    from tests.simulation.script import Script

TIMEOUT = timedelta(seconds=2)
POLICY = Policy(timeout=TIMEOUT, attempts=4, backoff=timedelta(milliseconds=200))
LIMITED = Policy(timeout=TIMEOUT, attempts=4, backoff=timedelta(milliseconds=200), concurrency=2)
CACHED = Policy(
    timeout=TIMEOUT, attempts=4, backoff=timedelta(milliseconds=200), cache=Cache(results=timedelta(minutes=10))
)
BUDGET = Budget(requests=6, per=timedelta(minutes=10))
MOST_PARTITIONS = 4
EMIT_INTERVAL = timedelta(seconds=10)
"""That of `Emit.BATCH` and `Emit.CLOSE`."""
MOST_ROUNDS, STEP = 4, 20
"""The rounds of an estimate, and the step of the load that it reads."""
STALE_AFTER, AT_MOST_EVERY = timedelta(minutes=3), timedelta(minutes=2)
"""When an owner is requested again, and the time between two requests of a quote."""
LEAST_LOAD = 20
"""The load of a car, without its hundreds, from which on it has a quote."""


class Sighting(Event):
    plate: str | None = None
    load: int | None = None


class Owner(BaseModel):
    name: str


class Street(BaseModel):
    street: str


class Quote(BaseModel):
    price: int


class Fit(BaseModel):
    value: int


class Offer(BaseModel):
    price: int


class Car(State, lifetime=timedelta(hours=2), grace=timedelta(minutes=10)):
    plate: Annotated[str | None, Latest()]
    load: Annotated[int, Sum()]
    sightings: Annotated[int, Count(of="event_id")]
    owner: Annotated[Owner | None, Enriched()]
    street: Annotated[Street | None, Enriched()]
    quote: Annotated[Quote | None, Enriched()]


class ShortCar(Car, lifetime=timedelta(minutes=8), grace=timedelta(minutes=2)): ...


class Visits(Car, window=timedelta(minutes=10), every=timedelta(minutes=5), grace=timedelta(minutes=5)): ...


class Estimate(State, lifetime=timedelta(minutes=8), grace=timedelta(minutes=2)):
    plate: Annotated[str | None, Latest()]
    load: Annotated[int, Sum()]
    sightings: Annotated[int, Count(of="event_id")]
    owner: Annotated[Owner | None, Enriched()]
    fit: Annotated[Fit | None, Enriched()]
    offer: Annotated[Offer | None, Enriched()]


class Total(State, window=timedelta(minutes=10), every=timedelta(minutes=5), grace=timedelta(minutes=5)):
    """As `Visits`, without enrichments."""

    plate: Annotated[str | None, Latest()]
    load: Annotated[int, Sum()]
    sightings: Annotated[int, Count(of="event_id")]


@enrichment(api="registry")
async def owner(api: Api, plate: str) -> Owner:
    return await api.get("/owners/{plate}", Owner, plate=plate)


@enrichment(api="registry")
async def street(api: Api, owner: Owner) -> Street:
    return await api.get("/streets", Street, name=owner.name)


@enrichment(api="prices")
async def quote(api: Api, load: int, owner: Owner | None) -> Quote:
    return await api.get("/quotes", Quote, load=load, name=owner.name if owner else "nobody")


OWNERS = Batch("/owners", Owner, parameter="plate", key="plate", size=2, wait=timedelta(milliseconds=500))


async def _listed_owner(api: Api, plate: str) -> Owner:
    return await api.get_one(OWNERS, plate)


@enrichment(api="prices", rounds=MOST_ROUNDS)
async def fit(api: Api, load: Annotated[int, Quantize(STEP)], owner: Owner | None, fit: Fit | None) -> Fit:
    name, value = owner.name if owner else "nobody", fit.value if fit else "none"
    return await api.get("/fits", Fit, load=load, name=name, value=value)


@enrichment(api="prices")
async def offer(api: Api, fit: Fit) -> Offer:
    return await api.get("/offers", Offer, value=fit.value)


def is_loaded(load: int) -> bool:
    """Return whether a car has a quote, by a load that goes up and down."""
    return load % 100 >= LEAST_LOAD


SINGLE = (owner, street, quote)
ITERATED = (replace(owner, function=_listed_owner), fit, offer)
REFRESHED = (
    replace(owner, stale_after=STALE_AFTER),
    street,
    replace(quote, at_most_every=AT_MOST_EVERY, when=condition("quote", is_loaded, {"load": int})),
)


class Limit(AlertRule):
    """A row of the limits. The condition of a negative one raises."""

    high: int
    low: int


def is_heavy(snapshot: Snapshot, limit: Limit) -> bool:
    if limit.high < 0:
        raise ValueError(f"{_load(snapshot)} is above {limit.high}")
    return _load(snapshot) >= limit.high


def is_light(snapshot: Snapshot, limit: Limit) -> bool:
    return _load(snapshot) < limit.low


def is_odd(snapshot: Snapshot, limit: Limit) -> bool:
    return is_heavy(snapshot, limit) and snapshot.state["sightings"] % 2 == 1


def _load(snapshot: Snapshot) -> int:
    """Return a load that goes up and down."""
    load: int = snapshot.state["load"]
    return load % 100


class Seen(BaseModel):
    sightings: int


class Level(BaseModel):
    exceeded: list[str]


def seen(snapshot: Snapshot) -> Iterable[tuple[str, Seen]]:
    if plate := snapshot.state.get("plate"):
        yield plate, Seen(sightings=snapshot.state["sightings"])


def level(snapshot: Snapshot, tables: Mapping[str, Mapping[str, Limit]]) -> Iterable[tuple[str, Level]]:
    exceeded = sorted(name for name, limit in tables[LIMITS.name].items() if _load(snapshot) >= limit.high)
    yield snapshot.device_id, Level(exceeded=exceeded)


LIMITS = Table("limits", Limit)
WEBHOOK = Webhook("pager", policy=POLICY)
HEAVY = Alerts("heavy", LIMITS, opens=is_heavy, closes=is_light, webhook=WEBHOOK)
ODD = Alerts("odd", LIMITS, opens=is_odd)
SEEN = Derived("seen", Seen, seen)
LEVELS = Derived("levels", Level, level, tables=(LIMITS,))


def application(  # noqa: PLR0913, PLR0917  # what differs
    name: str,
    state: type[State],
    alerts: tuple[Alerts, ...],
    enrichments: tuple[Enrichment, ...] = SINGLE,
    policy: Policy = POLICY,
    budget: Budget | None = None,
    emit: Emit = Emit.EVENT,
    registry: Policy | None = None,
) -> Application:
    return Application(
        name=name,
        event=Sighting,
        state=state,
        enrichments=enrichments,
        apis={"registry": registry or policy, "prices": policy} if enrichments else {},
        budget=budget,
        emit=emit,
        emit_interval=EMIT_INTERVAL,
        tables=(LIMITS,),
        alerts=alerts,
        derived=(SEEN, LEVELS),
        topics=Topics(partitions=MOST_PARTITIONS),
    )


def application_of(script: Script) -> Application:
    """Return the application that a script runs."""
    return (UNDELIVERED if script.grows else APPLICATIONS)[script.application]


def _applications(*alerts: Alerts) -> dict[str, Application]:
    return {
        "cars": application("cars", Car, alerts),
        "short": application("short", ShortCar, alerts),
        "visits": application("visits", Visits, alerts),
        "limited": application("limited", Car, alerts, policy=LIMITED, budget=BUDGET),
        "batched": application("batched", Visits, alerts, emit=Emit.BATCH),
        "closed": application("closed", Total, alerts, (), emit=Emit.CLOSE),
        "iterated": application("iterated", Estimate, alerts, ITERATED),
        "refreshed": application("refreshed", ShortCar, alerts, REFRESHED, registry=CACHED),
    }


APPLICATIONS = _applications(HEAVY, ODD)
"""By name: windows that outlive the script, that expire within it, and that overlap; limits; snapshots in intervals,
and of windows that are over; enrichments in rounds, and calls for several keys; answers that become stale.
"""
UNDELIVERED = _applications(replace(HEAVY, webhook=None), ODD)
"""The same without a webhook: with one, an application gets no partitions."""
