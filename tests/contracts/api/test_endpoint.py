from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from contracts.api import ENDPOINTS
from contracts.api.reads import BATCH, KEY, PAGE

text = st.text(st.characters(codec="utf-8"), min_size=1)


@given(text, text, st.lists(text))
def test_a_target_has_its_segments_and_query(name: str, key: str, where: list[str]) -> None:
    target = urlsplit(KEY.target({"where": where, "at": None, "prefix": "", "wait": 0}, name=name, key=key))
    assert [unquote(segment) for segment in target.path.split("/")] == ["", "v1", "states", name, key]
    assert parse_qsl(target.query) == [*(("where", value) for value in where), ("wait", "0")]


def test_a_target_without_parameters_has_no_query() -> None:
    assert BATCH.target(name="flights") == "/v1/states/flights:batchGet"
    assert PAGE.target({"after": None}, name="a/b") == "/v1/states/a%2Fb"


def test_every_segment_of_a_path_is_described() -> None:
    for endpoint in ENDPOINTS:
        assert len(endpoint.path_parameters) == endpoint.path.count("{"), endpoint.path
