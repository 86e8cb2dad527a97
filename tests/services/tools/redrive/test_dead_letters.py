"""The selection of dead letters."""

from __future__ import annotations

import pytest

from services.tools.redrive.dead_letters import DeadLetterFilter


@pytest.mark.parametrize(
    ("reasons", "enrichments", "expected"),
    [
        ([], [], True),
        (["undecodable"], [], True),
        (["delivery_failed", "undecodable"], [], True),
        (["delivery_failed"], [], False),
        (["enrichment_failed", "delivery_failed"], [], False),
        ([], ["weather"], False),
    ],
)
def test_a_selection_of_failed_calls_has_no_refused_records(
    reasons: list[str], enrichments: list[str], *, expected: bool
) -> None:
    assert DeadLetterFilter(frozenset(reasons), frozenset(enrichments)).has_records == expected
