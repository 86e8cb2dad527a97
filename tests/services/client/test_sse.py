"""The parser of server-sent events."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.client.sse import Parser, ServerEvent

STREAM = (
    ": a comment\n\nretry: 1000\n\nevent: state\nid: 1\ndata: {\n\r\ndata: }\r\n\r\nevent: state\rdata:ä€\r\r"
    "event: mark\n\ndata\n\nid: 2\n\nevent: x\nid: a\0b\ndata:  two\ndata: lines\n\ndata: cut"
).encode()
EVENTS = [
    ServerEvent("state", "{", "1"),
    ServerEvent("message", "}", None),
    ServerEvent("state", "ä€", None),
    ServerEvent("message", "", None),
    ServerEvent("x", " two\nlines", None),
]


@given(st.lists(st.integers(0, len(STREAM))))
def test_events_do_not_depend_on_how_the_stream_is_split(cuts: list[int]) -> None:
    parser = Parser()
    bounds = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in itertools.pairwise(bounds)]
    assert [event for piece in pieces for event in parser.feed(piece)] == EVENTS


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_event_comes_with_its_last_byte(end: str) -> None:
    parser = Parser()
    assert parser.feed(f"data: a{end}".encode()) == []
    assert parser.feed(end.encode()) == [ServerEvent("message", "a", None)]
