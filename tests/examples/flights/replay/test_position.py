from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from examples.flights.errors import BadPositionError, OtherReplayError
from examples.flights.replay.position import PositionFile

FIRST = date(2013, 1, 1)
PLACE = (datetime(2013, 1, 1, 10, 17, tzinfo=UTC), "2013-01-01/UA/1545/EWR-IAH", "departed")


def test_a_place_is_remembered(tmp_path: Path) -> None:
    PositionFile(tmp_path / "new" / "p", FIRST, 1).write(PLACE)
    assert PositionFile(tmp_path / "new" / "p", FIRST, 1).read() == PLACE
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["p"]


def test_at_first_there_is_none(tmp_path: Path) -> None:
    assert PositionFile(tmp_path / "p", FIRST, 1).read() is None


def test_without_a_file_nothing_is_remembered() -> None:
    nowhere = PositionFile(None, FIRST, 1)
    nowhere.write(PLACE)
    assert nowhere.read() is None


def test_a_position_in_other_days_is_refused(tmp_path: Path) -> None:
    PositionFile(tmp_path / "p", FIRST, 1).write(PLACE)
    with pytest.raises(OtherReplayError, match="--from 2013-01-01 --days 1"):
        PositionFile(tmp_path / "p", FIRST, 2).read()


@pytest.mark.parametrize("content", ["", "{}", "nonsense", '{"first": "2013-01-01"}'])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "p").write_text(content)
    with pytest.raises(BadPositionError, match="remove it"):
        PositionFile(tmp_path / "p", FIRST, 1).read()
