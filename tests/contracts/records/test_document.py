"""A value in place of a text becomes the text that the job's parser makes of it."""

import orjson
import pytest

from contracts.records.document import as_text, parse


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('"a"', "a"),
        ("1", "1"),
        ("-0", "0"),
        ("1.50", "1.5"),
        ("1E5", "100000.0"),
        ("1e7", "1.0E7"),
        ("-12345678.9", "-1.23456789E7"),
        ("1e-7", "1.0E-7"),
        ("-0.0", "-0.0"),
        ("1e400", '"Infinity"'),
        ("true", "true"),
        ('[ 1.50, "ä" ]', '[1.5,"ä"]'),
        ('{"a": 1, "a": {"b": null}}', '{"a":1,"a":{"b":null}}'),
    ],
)
def test_as_text(written: str, text: str) -> None:
    assert as_text(parse(f'{{"x":{written}}}'.encode())["x"]) == text


def test_values_read_by_orjson_give_the_same_text() -> None:
    written = b'{"x":{"a":[1e7,{"b":null}],"c":"d"}}'
    assert as_text(orjson.loads(written)["x"]) == as_text(parse(written)["x"])
