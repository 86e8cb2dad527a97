"""Records of other programs in the topic of snapshots: each is a dead letter, and the worker goes on."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
import pytest
from pydantic import BaseModel

from contracts import Api, Application, Enriched, Latest, State, Topics, enrichment
from contracts.planning.fingerprint import fingerprint, round_fingerprint
from contracts.types.key import LARGEST_KEY
from contracts.wire import LARGEST_COUNT, LARGEST_HEAD
from tests.services.enrichment.calls.virtual import virtually
from tests.services.enrichment.fleet import QUICK, Seen, answer, app, snapshot
from tests.services.enrichment.in_memory import Gated, Log, running, until

GOOD = snapshot(1, "P1", "d1").encode()


class Guess(BaseModel):
    name: str = ""


class Guessed(State):
    plate: Annotated[str | None, Latest()]
    guess: Annotated[Guess | None, Enriched()]


@enrichment(api="registry", rounds=3)
async def guess(api: Api, plate: str, guess: Guess | None) -> Guess:
    return await api.get("/guess", Guess, plate=plate, last=guess.name if guess else "")


iterative = Application(
    name="fleet",
    event=Seen,
    state=Guessed,
    enrichments=(guess,),
    apis={"registry": QUICK},
    topics=Topics(replay=True),
)


async def _worked(foreign: bytes, application: Application = app) -> tuple[list[str], list[str]]:
    """Return the reasons of the dead letters, and the devices that have answers, of a foreign and a good record."""
    log, gated = Log([foreign, GOOD]), Gated().let()
    async with running(log, gated, application):
        await until(lambda: 2 in log.committed)
    devices = sorted({feedback.device_id for feedback in gated.feedback()})
    return [dead_letter.reason for dead_letter in gated.dead_letters()], devices


@pytest.mark.parametrize(
    "fields",
    [
        {"device_id": ""},
        {"device_id": "x" * (LARGEST_KEY + 1)},
        {"epoch": LARGEST_COUNT + 1},
        {"version": LARGEST_COUNT + 1},
        {"first_seen": "0001-01-01T00:00:00+01:00"},
        {"first_seen": "9999-12-31T23:59:59-01:00"},
    ],
)
def test_a_record_that_no_answer_can_have_is_a_dead_letter(fields: dict[str, Any]) -> None:
    foreign = orjson.dumps(orjson.loads(snapshot(1, "P2", "d2").encode()) | fields)
    assert virtually(_worked(foreign)) == (["undecodable_snapshot"], ["d1"])


@pytest.mark.parametrize("depth", [253, 300, 1_000, 2_000])
def test_an_input_that_is_nested_deeply_is_a_dead_letter(depth: int) -> None:
    foreign = snapshot(1, "PLATE", "d2").encode().replace(b'"PLATE"', b"[" * depth + b"]" * depth)
    assert virtually(_worked(foreign)) == (["undecodable_snapshot"], ["d1"])


@pytest.mark.parametrize(("depth", "answered"), [(253, ["d1", "d2"]), (254, ["d1", "d2"]), (255, ["d1"])])
def test_an_own_result_that_is_nested_deeply_ends_no_worker(depth: int, answered: list[str]) -> None:
    """A round reads the result; what is too deep for a digest is a dead letter, as another input is."""
    first = round_fingerprint(fingerprint(guess, {"plate": "P2"}), 1, None)
    slot = answer(1, first, {"name": "RESULT"})
    own = b'{"more":' * depth + b'"' + b"x" * LARGEST_HEAD + b'"' + b"}" * depth
    foreign = snapshot(2, "P2", "d2", guess=slot).encode().replace(b'{"name":"RESULT"}', own)
    rejected = [] if "d2" in answered else ["undecodable_snapshot"]
    assert virtually(_worked(foreign, iterative)) == (rejected, answered)


def test_a_trace_context_that_is_none_is_not_passed_on() -> None:
    """A client refuses a record of 2 MB."""
    foreign = snapshot(1, "P2", "d2").model_copy(update={"traceparent": "x" * 2_000_000}).encode()
    log, gated = Log([foreign]), Gated().let()

    async def worked() -> None:
        async with running(log, gated):
            await until(lambda: 1 in log.committed)

    virtually(worked())
    assert {feedback.traceparent for feedback in gated.feedback()} == {None}
