"""Values from devices stay in their place of the URL."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from contracts import Batch, DeclarationError, PermanentCallError
from services.enrichment.calls.urls import batch_target, target
from tests.services.enrichment.fleet import Owner

BASE = "http://api.test:81/v1"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_a_value_is_one_segment_or_one_parameter(segment: str, parameter: str) -> None:
    try:
        found = target("/a/{x}/b", {"x": segment, "y": parameter})
    except PermanentCallError:
        assert segment == "" or re.search(r"[\\\x00-\x1f\x7f-\x9f]|(^|/)[.][.]?(/|$)", segment)
        return
    assert not re.search(r"[\\\x00-\x1f\x7f-\x9f]|(^|/)[.][.]?(/|$)", segment)
    url = urlsplit(BASE + found)
    assert (url.scheme, url.netloc, url.fragment) == ("http", "api.test:81", "")
    parts = url.path.split("/")
    assert [*parts[:3], *parts[4:]] == ["", "v1", "a", "b"]
    assert unquote(parts[3]) == segment
    assert parse_qs(url.query, keep_blank_values=True) == {"y": [parameter]}
    sent = URL(BASE + found, encoded=True)
    assert (sent.host, sent.port, sent.raw_path_qs) == ("api.test", 81, "/v1" + found)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("v1/admin", "/a/v1%2Fadmin"),
        ("x?y=1#z", "/a/x%3Fy%3D1%23z"),
        ("@evil.test:80/", "/a/%40evil.test%3A80%2F"),
        ("%2e%2e%2f", "/a/%252e%252e%252f"),
        (7, "/a/7"),
        (1.5, "/a/1.5"),
        (True, "/a/true"),
    ],
)
def test_attacks_are_encoded(value: str | float, path: str) -> None:
    assert target("/a/{x}", {"x": value}) == path


@pytest.mark.parametrize(
    "value",
    [
        *("", ".", "..", "../admin", "a/..", "a/./b", "\\..\\", "a\\b", "a\r\nHost: evil", "\0", "\x7f", "\x85"),
        *(float("nan"), float("inf"), "\ud800"),
    ],
)
def test_an_invalid_value_is_a_permanent_failure(value: str | float) -> None:
    with pytest.raises(PermanentCallError):
        target("/a/{x}", {"x": value})


@pytest.mark.parametrize(("template", "value"), [("/a/.{x}/b", "."), ("/a/v{x}", "..")])
def test_dots_are_refused_also_next_to_text_of_the_template(template: str, value: str) -> None:
    with pytest.raises(PermanentCallError):
        target(template, {"x": value})


def test_a_query_parameter_takes_characters_that_a_segment_refuses() -> None:
    assert target("/a", {"x": "..\\\r\n/."}) == "/a?x=..%5C%0D%0A%2F."


PLANES = Batch("/planes", Owner, parameter="tail num")


def test_many_keys_are_one_query() -> None:
    assert batch_target(PLANES, ["N1", "N&2=", "N,3"]) == "/planes?tail%20num=N1&tail%20num=N%262%3D&tail%20num=N%2C3"
    assert batch_target(replace(PLANES, separator=","), ["N1", "N&2"]) == "/planes?tail%20num=N1%2CN%262"


def test_a_key_cannot_become_two() -> None:
    with pytest.raises(PermanentCallError, match="stands between the keys"):
        batch_target(replace(PLANES, separator=","), ["N1,N2"])


@pytest.mark.parametrize("template", ["a/{x}", "/a?b={x}", "/a#{x}", "http://evil/{x}"])
def test_a_wrong_template_is_a_bug(template: str) -> None:
    with pytest.raises(ValueError, match="the path"):
        target(template, {"x": "1"})


def test_a_path_without_its_value_is_a_bug() -> None:
    with pytest.raises(DeclarationError, match=r"has no value for {z}. Write get\('/a/{z}', …, z=…\)"):
        target("/a/{z}", {"x": "1"})
