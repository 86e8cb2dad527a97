"""The requests that docs/how-to/query-states.md shows over HTTP."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from contracts.model.named_state import QueryOptions
from tests.services.query.http.instance import answering
from tests.services.query.in_memory import ScratchStore, a_state, dependencies_of

PAGE = (Path(__file__).parents[2] / "docs/how-to/query-states.md").read_text(encoding="utf-8")
KEY = "2013-01-01/UA/1545/EWR-IAH"
FIRST_SEEN = 1_357_035_300_000
EPOCH = 1_771_405_200_000
EXAMPLES = re.findall(r"`(curl [^`]*\$BASE[^`]+)`", PAGE)
FLIGHTS = replace(
    a_state(lifetime=timedelta(hours=1), query=QueryOptions(history=5, indexes=("state.status",))),
    event_offset="event_offset",
)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 10


@pytest.mark.parametrize("example", EXAMPLES)
async def test_the_request_is_answered(example: str) -> None:
    words = shlex.split(example.replace("$BASE", "").replace("$KEY", KEY.replace("/", "%2F")))
    (path,) = [word for word in words if word.startswith("/")]
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    body = next((words[at + 1] for at, word in enumerate(words) if word == "-d"), "")
    path = re.sub(r"wait=\d+", "wait=0.01", path)
    async with answering(dependencies_of(FLIGHTS), hot=True) as instance:
        store = instance.dependencies.stores["flights"]
        assert isinstance(store, ScratchStore)
        for version in range(1, 6):
            store.put(KEY, window_start=FIRST_SEEN, epoch=EPOCH, version=version, value=b'{"event_offset":1047}')
        answer = await instance.ask(path, "POST" if body else "GET", headers, body.encode())
    expected = 304 if headers else 503 if "min_version=6" in path else 200
    assert answer.status == expected
