"""Texts of errors are written whatever the application's functions raise."""

from __future__ import annotations

import pytest

from contracts import PermanentCallError, RetryableCallError
from contracts.errors import described, message_of


class UnprintableError(ValueError):
    """An error without a text: its own `__str__` raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __str__(self) -> str:
        raise self.error


@pytest.mark.parametrize(
    ("error", "message", "description"),
    [
        (ValueError("no city"), "no city", "ValueError: no city"),
        (ValueError("half \ud800"), "half ?", "ValueError: half ?"),
        (ValueError(), "", "ValueError"),
        (UnprintableError(RuntimeError()), "", "UnprintableError"),
        (UnprintableError(SystemExit()), "", "UnprintableError"),
        (SystemExit(1), "1", "SystemExit: 1"),
    ],
)
def test_any_error_is_described(error: BaseException, message: str, description: str) -> None:
    assert (message_of(error), described(error)) == (message, description)


@pytest.mark.parametrize("kind", [RetryableCallError, PermanentCallError])
def test_the_reason_of_a_failed_call_is_always_written(
    kind: type[RetryableCallError | PermanentCallError],
) -> None:
    error = kind("no city \ud800", response="\udfff of an API")
    assert (error.reason, error.response) == ("no city ?", "? of an API")
