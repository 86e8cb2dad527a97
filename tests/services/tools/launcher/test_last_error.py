from __future__ import annotations

import pytest

from services.tools.launcher.last_error import last_error


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", ""),
        ("\n \n", ""),
        ("made events\ntopic 'events' has 8 partitions, not 4\n", "topic 'events' has 8 partitions, not 4"),
        ('{"job": "ended", "why": "set it"}\n26/11/21 WARN Utils: goodbye\n', "set it"),
        ("stateloop broker: Java is missing: install it with: x\nTraceback\n", "Java is missing: install it with: x"),
        ('stateloop broker: {"jars": "."}\nException in thread\n', "Exception in thread"),
        ('{"why": \n{"why": 1}', '{"why": 1}'),
    ],
)
def test_the_line_that_explains_the_failure(output: str, line: str) -> None:
    assert last_error(output) == line
