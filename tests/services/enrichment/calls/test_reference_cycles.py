"""A failed call leaves no reference cycles."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from services.enrichment.calls.response import Response
from tests.services.enrichment.calls.scripted import Desk, Scripted, good
from tests.services.enrichment.calls.virtual import virtually
from tests.services.enrichment.fleet import QUICK

if TYPE_CHECKING:
    from collections.abc import Iterator


class Seen(Response):
    """A response that can be found."""


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def left() -> int:
    return sum(type(one) is Seen for one in gc.get_objects())


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"<html>"), (200, b'{"name": 1}'), (503, b"down"), (403, b"no"), (404, b"")],
    ids=["rubbish", "misfit", "down", "refused", "absent"],
)
def test_no_response_is_part_of_a_reference_cycle(status: int, body: bytes) -> None:
    async def scenario() -> None:
        desk = Desk(Scripted(lambda _: Seen(status, body)), QUICK)
        assert (await desk.answer("P1")).status in ("failure", "absence")

    virtually(scenario())
    assert left() == 0


@pytest.mark.usefixtures("uncollected")
def test_no_response_is_referenced_after_a_retried_call() -> None:
    tried: list[str] = []

    def storm(target: str) -> Response:
        tried.append(target)
        return Seen(200, b"<html>") if len(tried) < 3 else good(target)

    async def scenario() -> None:
        assert (await Desk(Scripted(storm), QUICK).answer("P1")).status == "result"

    virtually(scenario())
    assert left() == 0
