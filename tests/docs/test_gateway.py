"""The example of docs/how-to/topics.md that stores the start of each window."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.docs.gateway import first_seen, opened

START = datetime(2026, 5, 1, 8, 0, 0, 123456, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_window_keeps_its_start_across_a_restart_of_the_gateway(tmp_path: Path) -> None:
    path = str(tmp_path / "windows")
    database = opened(path)
    assert first_seen(database, "s1", START, HOUR) == START
    database.close()
    database = opened(path)
    assert first_seen(database, "s1", START + timedelta(minutes=59), HOUR) == START
    assert first_seen(database, "s2", START + timedelta(minutes=59), HOUR) == START + timedelta(minutes=59)
    database.close()


def test_an_event_after_the_lifetime_starts_the_next_window(tmp_path: Path) -> None:
    database = opened(str(tmp_path / "windows"))
    first_seen(database, "s1", START, HOUR)
    assert first_seen(database, "s1", START + HOUR, HOUR) == START + HOUR
    assert first_seen(database, "s1", START + timedelta(minutes=90), HOUR) == START + HOUR
    database.close()
