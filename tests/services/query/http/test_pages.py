"""The parts of a page: how they are merged, and how instances of this release and of 0.2.0 exchange them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.query.http.cursor import decode_cursor, encode_cursor
from services.query.http.forwarding import SEPARATOR
from services.query.http.page_routes import SILENT_CURSOR, WINDOW_CURSOR
from services.query.http.pages import PageItems, decode_page, merge_pages, page_sequence
from services.query.store import Position

if TYPE_CHECKING:
    from random import Random

    from pydantic import TypeAdapter

keys = st.dictionaries(st.text("ab", min_size=1, max_size=3), st.sampled_from((-1.5, 0.0, 2.0)), max_size=12)


def part(positions: list[Position], limit: int) -> PageItems:
    """Return the page that an instance with these positions gives."""
    items = [(position, position.key.encode()) for position in positions]
    return PageItems(items[:limit], positions[limit - 1] if len(items) > limit else None)


@given(numbers=keys, owners=st.randoms(use_true_random=False), limit=st.integers(1, 5), descending=st.booleans())
def test_the_pages_of_several_instances_are_those_of_one(
    numbers: dict[str, float],
    owners: Random,
    limit: int,
    descending: bool,  # noqa: FBT001 (drawn)
) -> None:
    everything = sorted((Position(number, key) for key, number in numbers.items()), reverse=descending)
    owner = {position: owners.randrange(3) for position in everything}
    found: list[Position] = []
    after: Position | None = None
    while True:
        left = everything if after is None else everything[everything.index(after) + 1 :]
        parts = [part([one for one in left if owner[one] == instance], limit) for instance in range(3)]
        page = merge_pages(parts, limit, descending=descending)
        assert len(page.items) <= limit
        found += [position for position, _ in page.items]
        after = page.after
        if after is None:
            break
    assert found == everything


def test_only_the_newest_window_is_on_a_page() -> None:
    older = PageItems([(Position(0, "a"), b"a")], Position(0, "a"), 1)
    newer = PageItems([(Position(0, "b"), b"b")], None, 2)
    empty = PageItems((), None)
    assert merge_pages([older, newer, empty], 5) == PageItems([(Position(0, "b"), b"b")], None, 2)


KEYED = PageItems([(Position(0, "a"), b'{"key":"a"}'), (Position(0, "b"), b'{"key":"b"}')], Position(0, "b"))
SILENT = PageItems([(Position(17, "b"), b'{"key":"b"}')], Position(17, "b"))
WINDOW = PageItems([(Position(1.5, "b"), b'{"key":"b"}')], None, 3_600_000)


@pytest.mark.parametrize("page", [KEYED, SILENT, WINDOW], ids=["keyed", "silent", "window"])
def test_another_instance_reads_a_page(page: PageItems) -> None:
    head, *texts = page_sequence(page, has_numbers=page is not KEYED).body.split(SEPARATOR)
    assert decode_page(head, texts) == page


@pytest.mark.parametrize(
    ("page", "body"),
    [
        (KEYED, b'"b"\x1e{"key":"a"}\x1e{"key":"b"}'),
        (PageItems([], None), b"null"),
        (SILENT, b'{"after":[17,"b"],"positions":[[17,"b"]]}\x1e{"key":"b"}'),
        (WINDOW, b'{"window_start":3600000,"after":null,"positions":[[1.5,"b"]]}\x1e{"key":"b"}'),
        (PageItems([], None), b'{"window_start":null,"after":null,"positions":[]}'),
    ],
    ids=["keyed", "empty", "silent", "window", "no window"],
)
def test_pages_of_the_last_release_are_read(page: PageItems, body: bytes) -> None:
    head, *texts = body.split(SEPARATOR)
    assert decode_page(head, texts) == page


@pytest.mark.parametrize(
    ("page", "members"),
    [(SILENT, {"after", "positions"}), (WINDOW, {"window_start", "after", "positions"})],
    ids=["silent", "window"],
)
def test_the_last_release_reads_pages(page: PageItems, members: set[str]) -> None:
    """It reads the key of a page by keys from the texts, and the end of the page as a text."""
    assert page_sequence(KEYED, has_numbers=False).body == b'"b"\x1e{"key":"a"}\x1e{"key":"b"}'
    head, *texts = page_sequence(page, has_numbers=True).body.split(SEPARATOR)
    facts = orjson.loads(head)
    assert members <= facts.keys()
    assert len(facts["positions"]) == len(texts)


@pytest.mark.parametrize(
    ("adapter", "cursor", "place"),
    [
        (SILENT_CURSOR, "WzE2OTk5NjMyMDAsIkpGSyJd", (1_699_963_200, "JFK")),
        (WINDOW_CURSOR, "WyItc3RhdGUuZmxpZ2h0cyIsMTY5OTk2MzIwMDAwMCw3LjAsIkpGSyJd",
         ("-state.flights", 1_699_963_200_000, 7.0, "JFK")),
        (WINDOW_CURSOR, "W251bGwsMTY5OTk2MzIwMDAwMCwwLjAsIkpGSyJd", (None, 1_699_963_200_000, 0.0, "JFK")),
    ],
    ids=["silent", "by number", "by key"],
)  # fmt: skip
def test_cursors_of_the_last_release_are_read(
    adapter: TypeAdapter[tuple[str | float | None, ...]], cursor: str, place: tuple[str | float | None, ...]
) -> None:
    assert decode_cursor(adapter, cursor) == place
    assert encode_cursor(place) == cursor
