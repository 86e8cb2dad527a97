"""The loops of a suite: sampled together, reported separately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession

from contracts import Suite
from examples.flights.application import app as flights
from services.query.console.loops import Loops
from services.query.lookup.authentication import ANONYMOUS, Principal
from services.query.lookup.problems import ProblemError
from tests.services.query.console.departing import KEYS, RATE, SUITE, two_at_work
from tests.services.query.console.observations import a_dead_letter
from tests.services.query.console.stage import Stage

if TYPE_CHECKING:
    from contracts.api.loop import LoopResponse


def working(**overrides: Any) -> Loops:
    loops = Loops(SUITE, 2.0)
    for at in range(0, 60, 2):
        loops.record(two_at_work(at, until=60, **overrides))
    return loops


def response(loops: Loops, name: str | None) -> LoopResponse:
    found = loops.get(name, ANONYMOUS).history.answer(0)
    assert found is not None
    return found


def test_each_application_has_its_own_metrics() -> None:
    loops = working()
    for name, keys in KEYS.items():
        found = response(loops, name)
        assert found.application == name
        assert [one.keys for one in found.job] == [keys]
        assert name in {state.name for state in found.states}
    assert {state.name for state in response(loops, "departures").states} == {"departures"}
    assert response(loops, "departures").topics["snapshots"].rate == RATE
    assert response(loops, "departures").apis == ()
    assert response(loops, None).application == "flights"


def test_each_application_has_its_own_health() -> None:
    assert [(one.name, one.healthy) for one in working().health()] == [("flights", True), ("departures", True)]
    loops = working(starts=0)
    assert [(one.name, one.healthy) for one in loops.health()] == [("flights", True), ("departures", False)]
    assert [reason.kind for reason in response(loops, "departures").health.reasons] == ["job_starting"]


@pytest.mark.parametrize(
    ("down", "healthy"), [("enrichment", (False, True)), ("derive", (False, True)), ("job", (False, False))]
)
def test_an_application_is_unhealthy_without_the_processes_that_it_depends_on(
    down: str, healthy: tuple[bool, bool]
) -> None:
    loops = working(down=down)
    assert [(one.name, one.healthy) for one in loops.health()] == [*zip(KEYS, healthy, strict=True)]
    kinds = {reason.kind for name in KEYS for reason in response(loops, name).health.reasons}
    assert kinds == {"process_unreachable"}


def test_the_health_before_the_first_observation_is_not_reported() -> None:
    assert Loops(SUITE, 2.0).health() == ()


def test_an_unknown_application_is_reported_with_those_in_the_scope() -> None:
    for principal, known in (
        (ANONYMOUS, "flights, departures"),
        (Principal("some", ("departures", "other")), "departures"),
        (Principal("none", ("other",)), "none"),
    ):
        with pytest.raises(ProblemError) as refused:
            Loops(SUITE, 2.0).get("other", principal)
        assert refused.value.problem.kind == "unknown_application"
        assert refused.value.problem.detail == f"The applications are: {known}"


def test_an_application_beyond_the_scope_is_rejected_whether_it_exists_or_not() -> None:
    details = []
    for name in ("departures", "nosuch"):
        with pytest.raises(ProblemError) as refused:
            Loops(SUITE, 2.0).get(name, Principal("some", ("flights",)))
        assert refused.value.problem.kind == "not_yours"
        details.append(refused.value.problem.detail.replace(name, "…"))
    assert details[0] == details[1]


async def test_the_routes_answer_for_an_application() -> None:
    stage = Stage(suite=SUITE)
    for at in (0, 2):
        stage.observe(two_at_work(at, until=2))
    stage.loops.get("departures", ANONYMOUS).dead_letters.record(a_dead_letter(1, reason="late"))
    async with stage.serving(), ClientSession() as session:

        async def ask(path: str) -> Any:
            async with session.get(stage.base + path) as found:
                return await found.json()

        listed = [{"name": "flights", "healthy": True}, {"name": "departures", "healthy": True}]
        for query, name in (("", "flights"), ("?application=departures", "departures")):
            body = await ask(f"/v1/loop{query}")
            assert (body["application"], body["applications"]) == (name, listed)
            assert (await ask(f"/v1/loop/graph{query}"))["application"] == name
        assert (await ask("/v1/loop/dead_letters"))["counts"] == {}
        departed = await ask("/v1/loop/dead_letters?application=departures")
        assert (departed["topic"], departed["counts"]) == ("departures_dead_letters", {"late": 1})


def test_a_single_application_is_a_suite() -> None:
    loops = Loops(Suite(flights), 2.0)
    for at in (0, 2):
        loops.record(two_at_work(at, until=2))
    assert [one.name for one in loops.health()] == ["flights"]
