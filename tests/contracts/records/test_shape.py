"""Constraints hold at every depth of a record; tests/spark_app/query/test_decode.py holds the job to the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.records.document import LONGEST_NAME
from contracts.records.record import Reason, RecordError
from contracts.records.shape import check_own, feedback_shape, read
from tests import bounded
from tests.bounded import VALUES, Bounded, app
from tests.hostile import good

LONGEST = 10**6
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
POSITIONS = st.fixed_dictionaries({}, optional=dict.fromkeys(("lat", "lon"), st.floats(-200, 200) | SCALARS))
ROUTES = st.fixed_dictionaries(
    {}, optional={"start": POSITIONS, "end": POSITIONS, "name": DOCUMENTS, "stops": st.lists(POSITIONS)}
)


def errors(value: bytes) -> list[RecordError | None]:
    """The results of `read` and `check_own` for a record that orjson wrote."""
    refusals: list[RecordError | None] = []
    for look in (lambda: read(Bounded, value, LONGEST), lambda: check_own(Bounded, value)):
        try:
            look()
            refusals.append(None)
        except RecordError as refused:
            refusals.append(refused)
    return refusals


def assert_the_same(value: bytes) -> None:
    read_so, checked_so = map(str, errors(value))
    assert read_so == checked_so


INSIDE = " of the declared type and constraints"
ROUTE = f"route is not an object{INSIDE}"
RESULT = f"result is not an object{INSIDE}"


def refusal(value: bytes) -> tuple[Reason, str | None]:
    with pytest.raises(RecordError) as refused:
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
    reason, detail = refusal(good(**{name: value}))
    assert (reason, (detail or "").partition(" ")[0]) == (Reason.INVALID_FIELD, name)


@pytest.mark.parametrize(
    ("name", "value", "detail"),
    [
        ("device_id", None, "device_id is missing, or not a text of 1 or more characters and of 500 bytes or fewer"),
        ("ts", "yesterday", "ts is missing, or not a time with an offset, such as 2026-01-01T12:00:00Z"),
        ("speed", 2, "speed is not a number >= 0 and <= 1.5"),
        ("level", 10, "level is not a whole number >= 0 and < 10"),
        ("colour", "blue", "colour is not one of red, green"),
        (
            "few",
            [],
            "few is not a list of 1 or more items and of 2 items or fewer, of the declared type and constraints",
        ),
        ("route", {}, ROUTE),
    ],
)
def test_an_invalid_field_is_refused_with_what_is_expected(name: str, value: object, detail: str) -> None:
    assert refusal(good(**{name: value})) == (Reason.INVALID_FIELD, detail)


@pytest.mark.parametrize("position", ['{"lat":1e400}', '{"lat":1,"lon":-1e400}'])
def test_an_infinity_is_refused_at_every_depth(position: str) -> None:
    value = good(route="@").replace(b'"@"', f'{{"start":{position}}}'.encode())
    assert refusal(value) == (Reason.INVALID_FIELD, ROUTE)


def test_of_a_repeated_name_the_last_counts_and_each_must_have_the_type() -> None:
    once = good(level=1)
    assert read(Bounded, once[:-1] + b',"level":2}', app.largest_record)["level"] == 2
    assert refusal(once.replace(b'"level":1', b'"level":"x","level":1'))[0] is Reason.MALFORMED


def test_the_same_is_true_of_results() -> None:
    shape, accepted, refusals = feedback_shape(app), [], set()
    for value in bounded.answers():
        try:
            accepted.append(read(shape, value, app.largest_record)["result"]["found"])
        except RecordError as refused:
            refusals.add((refused.reason, refused.detail if refused.reason is Reason.INVALID_FIELD else None))
    assert refusals == {(Reason.INVALID_FIELD, RESULT), (Reason.MALFORMED, None)}
    assert len(accepted) >= 20
    assert all(result is None or -90 <= result["where"]["lat"] <= 90 for result in accepted)


@given(st.sampled_from(sorted(VALUES)), DOCUMENTS | ROUTES)
def test_records_of_our_own_are_checked_as_the_job_checks_them(name: str, document: object) -> None:
    try:
        value = good(**{name: document})
    except TypeError:  # no text, and so nothing that could be written
        return
    assert_the_same(value)


@given(ROUTES)
def test_so_are_models_in_it(route: object) -> None:
    assert_the_same(good(route=route))


@pytest.mark.parametrize("text", ["\\ud800", "\\\\ud83d\\ude00", "a\\b", "\n", "x" * LONGEST_NAME])
def test_so_are_texts_that_the_jobs_parser_does_not_bear(text: str) -> None:
    assert_the_same(good(tags={text: text}))
    assert_the_same(good(tags={f"{text}x": text}))


def test_the_parser_checks_records_of_our_own() -> None:
    assert all(isinstance(error, RecordError) for error in errors(good(tags={"a": "\\ud800"})))
    assert all(isinstance(error, RecordError) for error in errors(good(tags={"x" * (LONGEST_NAME + 1): "a"})))
