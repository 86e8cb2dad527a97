"""Admission: which of the wanted requests may start, by the device's budget and by each enrichment's interval."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from contracts.wire import REDRIVEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from contracts.model.application import Application
    from contracts.model.enrichment import Enrichment
    from contracts.planning.request import Request
    from contracts.wire import Answer, Snapshot


class LastRequest(NamedTuple):
    """The last request of one enrichment for one window: when it started or was answered, and how many there were."""

    at: datetime
    spent: int = 0


class Admission(NamedTuple):
    """The requests that may start, those that come too soon after the last one, and those beyond the budget."""

    admitted: list[Request]
    too_soon: list[Request]
    over_budget: list[Request]


def admit(
    application: Application, snapshot: Snapshot, now: datetime, wanted: list[Request], begun: Mapping[str, LastRequest]
) -> Admission:
    """Divide the wanted requests by what the slots contain, and by what is `begun` and not in a slot yet."""
    if not wanted or not application.limited:
        return Admission(wanted, [], [])
    budget, admission = application.budget, Admission([], [], [])
    spent = {
        enrichment.name: _spent(application, enrichment, snapshot, now, begun) for enrichment in application.enrichments
    }
    left = budget.requests - sum(spent.values()) if budget else len(wanted)
    for request in wanted:
        enrichment = application.by_name[request.enrichment]
        if request.skipped is not None:
            admission.admitted.append(replace(request, spent=spent[enrichment.name] or None, counted_at=now))
        elif _is_too_soon(enrichment, request, snapshot, now, begun):
            admission.too_soon.append(request)
        elif left <= 0:
            admission.over_budget.append(request)
        else:
            left -= 1
            counted = replace(request, spent=spent[enrichment.name] + 1, counted_at=now) if budget else request
            admission.admitted.append(counted)
    return admission


def _spent(
    application: Application,
    enrichment: Enrichment,
    snapshot: Snapshot,
    now: datetime,
    begun: Mapping[str, LastRequest],
) -> int:
    """Return how many requests the enrichment made in this period, by its slot or, if those are more, by the worker."""
    if application.budget is None:
        return 0
    present = application.budget.period(snapshot.first_seen, now)
    counts = [
        called.spent
        for called in _known(snapshot.enrichments.get(enrichment.name), begun.get(enrichment.name))
        if application.budget.period(snapshot.first_seen, called.at) == present
    ]
    return max(counts, default=0)


def _is_too_soon(
    enrichment: Enrichment, request: Request, snapshot: Snapshot, now: datetime, begun: Mapping[str, LastRequest]
) -> bool:
    """Return whether the last request is less than the interval ago. Further rounds belong to their first.

    A time that lies as far ahead, by a wrong clock, delays nothing. A redrive repeats a failure without a delay.
    """
    if enrichment.at_most_every is None or request.round > 1:
        return False
    answer = snapshot.enrichments.get(enrichment.name)
    answered = None if answer is None or answer.status == "skipped" else answer
    known = _known(answered, begun.get(enrichment.name))
    if answer is not None and answer.fingerprint == REDRIVEN:
        known = (called for called in known if called.at > answer.ts)  # its mark is no request, and opens the former
    return any(abs(now - called.at) < enrichment.at_most_every for called in known)


def _known(answer: Answer | None, begun: LastRequest | None) -> Iterable[LastRequest]:
    if answer is not None:
        yield LastRequest(answer.ts, answer.spent or 0)
    if begun is not None:
        yield begun
