"""Constraints hold at every depth of a record; tests/spark_app/test_decode.py holds the job to the same."""

import pytest

from contracts.record import Reason, Refused
from contracts.shape import feedback_shape, read
from tests import bounded
from tests.bounded import Bounded, app
from tests.hostile import good


def refusal(value: bytes) -> tuple[Reason, str | None]:
    with pytest.raises(Refused) as refused:
        read(Bounded, value, app.largest_record)
    return refused.value.reason, refused.value.detail


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("route", {}),
        ("route", {"start": {"lat": 500}}),
        ("route", {"start": {"lat": 1}, "end": {}}),
        ("route", {"start": {"lat": 1}, "stops": [{"lat": 1}, {"lat": -91}]}),
        ("speed", -3),
        ("letters", ["a", "zzz"]),
        ("few", []),
        ("few", ["a", "b", "c"]),
        ("numbers", [1, 100]),
    ],
)
def test_a_broken_constraint_is_refused_with_the_fields_name(name: str, value: object) -> None:
    assert refusal(good(**{name: value})) == (Reason.INVALID_FIELD, name)


@pytest.mark.parametrize("position", ['{"lat":1e400}', '{"lat":1,"lon":-1e400}'])
def test_an_infinity_is_refused_at_every_depth(position: str) -> None:
    value = good(route="@").replace(b'"@"', f'{{"start":{position}}}'.encode())
    assert refusal(value) == (Reason.INVALID_FIELD, "route")


def test_of_a_repeated_name_the_last_counts_and_each_must_have_the_type() -> None:
    once = good(level=1)
    assert read(Bounded, once[:-1] + b',"level":2}', app.largest_record)["level"] == 2
    assert refusal(once.replace(b'"level":1', b'"level":"x","level":1'))[0] is Reason.MALFORMED


def test_the_same_holds_for_results() -> None:
    shape, accepted, refusals = feedback_shape(app), [], set()
    for value in bounded.answers():
        try:
            accepted.append(read(shape, value, app.largest_record)["result"]["found"])
        except Refused as refused:
            refusals.add((refused.reason, refused.detail if refused.reason is Reason.INVALID_FIELD else None))
    assert refusals == {(Reason.INVALID_FIELD, "result"), (Reason.MALFORMED, None)}
    assert len(accepted) >= 20
    assert all(result is None or -90 <= result["where"]["lat"] <= 90 for result in accepted)
