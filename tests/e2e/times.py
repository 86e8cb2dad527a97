"""The times of a test. They start with the test: its module may have been imported an hour before."""

from datetime import UTC, datetime, timedelta
from functools import cache


@cache
def now() -> datetime:
    """Return when the test began."""
    return datetime.now(UTC)


def older() -> datetime:
    """Return the start of a device's first window, which is open."""
    return now() - timedelta(minutes=20)


def newer() -> datetime:
    """Return the start of its second window."""
    return now() - timedelta(minutes=1)
