"""The parameters that several commands have, and how the text of an argument becomes a value."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter, Token

FLAT = Parameter(name="*")
"""The options of a class, without a prefix of its name."""
ApplicationName = Annotated[
    str | None,
    Parameter(name="--application", help="one application of the suite (default: all of them)", metavar="NAME"),
]


def parsed(parse: Callable[[str], Any], **more: Any) -> Parameter:
    """Return a parameter whose value a function makes of its text. The function raises ValueError."""

    def convert(_: Any, tokens: Sequence[Token]) -> Any:
        return parse(tokens[-1].value)

    return Parameter(converter=convert, n_tokens=1, **more)


def parsed_each(parse: Callable[[str], Any], **more: Any) -> Parameter:
    """Return a parameter that may be repeated: a function makes a value of each text, or raises ValueError."""

    def convert(_: Any, tokens: Sequence[Token]) -> Any:
        return tuple(parse(token.value) for token in tokens)

    return Parameter(converter=convert, n_tokens=1, **more)


def count(text: str) -> int:
    """Return a number of 1 or more. Raises ValueError."""
    if not text.isascii() or not text.isdigit():
        raise ValueError("write a whole number")
    if not int(text):
        raise ValueError("write 1 or more")
    return int(text)


def zoned_time(text: str) -> datetime:
    """Return a time with its offset from UTC, or the present one for `now`. Raises ValueError."""
    if text == "now":
        return datetime.now(UTC)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError("write a time with its offset from UTC, as 2013-01-01T08:30:00-05:00, or now")
    return time
