"""Each guard of refreshed, limited and conditional enrichments is necessary: without it, a script fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.model.condition import Condition
from contracts.planning import admission, plan
from services.enrichment.calls.response_cache import ResponseCache
from services.enrichment.partition_state import PartitionState
from tests.simulation.generate import script as script_of
from tests.simulation.mutations import Mutations
from tests.simulation.script import Fault, Script
from tests.simulation.steps import loaded, sent
from tests.simulation.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from datetime import datetime, timedelta

    import pytest

    from contracts.model.enrichment import Enrichment
    from contracts.planning.admission import LastRequest
    from contracts.planning.request import Request
    from contracts.wire import Answer, Snapshot
    from services.enrichment.calls.response_cache import CachedResponse
    from services.enrichment.in_flight import PendingRequest

STALE = (sent(10.0), sent(250.0, "e1"))
mutation = Mutations(script_of, verdict)


@mutation(Script(1, STALE, "refreshed"), is_found_by_seeds=True)
def no_answer_is_stale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan, "_is_stale", lambda *_: False)


@mutation(Script(1, (sent(10.0), sent(140.0, "e1")), "refreshed"), is_found_by_seeds=True)
def answers_are_stale_early(patch: pytest.MonkeyPatch) -> None:
    def is_stale(enrichment: Enrichment, answer: Answer, now: datetime) -> bool:
        return enrichment.stale_after is not None and now - answer.ts > enrichment.stale_after / 2

    patch.setattr(plan, "_is_stale", is_stale)


@mutation(Script(1, STALE, "refreshed"), is_found_by_seeds=True)
def a_refresh_gets_the_cached_answer(patch: pytest.MonkeyPatch) -> None:
    find = ResponseCache._find  # noqa: SLF001

    def find_any(cache: ResponseCache, key: Hashable, _: timedelta | None) -> CachedResponse | None:
        return find(cache, key, None)

    patch.setattr(ResponseCache, "_find", find_any)


@mutation(Script(1, (loaded(10.0, 50), loaded(40.0, 30)), "refreshed"), is_found_by_seeds=True)
def an_interval_delays_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admission, "_is_too_soon", lambda *_: False)


@mutation(Script(1, (loaded(10.0, 50), Fault(20.0, "crash", "worker-0", 5.0), loaded(40.0, 30)), "refreshed"))
def a_slot_shows_no_last_request(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admission, "_known", lambda _, begun: [] if begun is None else [begun])


@mutation(Script(1, (loaded(10.0, 10), loaded(40.0, 30)), "refreshed"), is_found_by_seeds=True)
def a_skip_delays_a_request(patch: pytest.MonkeyPatch) -> None:
    def is_too_soon(
        enrichment: Enrichment, _: Request, snapshot: Snapshot, now: datetime, begun: Mapping[str, LastRequest]
    ) -> bool:
        name, interval = enrichment.name, enrichment.at_most_every
        known = admission._known(snapshot.enrichments.get(name), begun.get(name))  # noqa: SLF001
        return interval is not None and any(abs(now - called.at) < interval for called in known)

    patch.setattr(admission, "_is_too_soon", is_too_soon)


UNAVAILABLE = Fault(5.0, "unavailable", "prices", 60.0)
EIGHT_DEVICES = tuple(loaded(10.0 + number / 10, 50 + number, f"d{number}") for number in range(8))


@mutation(Script(1, (UNAVAILABLE, *EIGHT_DEVICES), "refreshed", partitions=1, unfinished=4, in_flight=1))
def a_deferred_request_delays_itself(patch: pytest.MonkeyPatch) -> None:
    defer_queued = PartitionState.defer_queued

    def defer_counted(state: PartitionState, api: str, pending: PendingRequest) -> None:
        begun = state._begun  # noqa: SLF001
        key = pending.request.window, pending.request.enrichment
        called = begun.get(key)
        defer_queued(state, api, pending)
        if called is not None:
            begun.put(key, called)

    patch.setattr(PartitionState, "defer_queued", defer_counted)


@mutation(Script(1, (loaded(10.0, 10),), "refreshed"), is_found_by_seeds=True)
def a_condition_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Condition, "unmet", lambda *_: None)


test_a_script_fails_without_a_guard = mutation.script_test()
test_fresh_seeds_find_a_missing_guard = mutation.seed_test()
