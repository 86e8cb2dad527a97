import math
from datetime import date
from pathlib import Path

import pytest

from examples.flights.replay.__main__ import closing_line, main, parser


def test_options() -> None:
    options = parser().parse_args(["--from", "2013-02-01", "--days", "3", "--speed", "max", "--position", "p"])
    assert (options.first, options.days, options.speed, options.position) == (date(2013, 2, 1), 3, None, Path("p"))
    assert parser().parse_args([]).speed == 600


@pytest.mark.parametrize("wrong", [["--days", "0"], ["--speed", "0"], ["--speed", str(math.nan)], ["--from", "today"]])
def test_wrong_options_are_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(wrong)


def test_the_last_line_of_the_output() -> None:
    options = parser().parse_args(["--position", "p"])
    assert closing_line(2528, options, ended=True) == "The end of the data: 2,528 events sent, 1 day from 2013-01-01"
    assert closing_line(9, options, ended=False) == "Stopped after 9 events: the same command goes on"
    assert "remove p" in closing_line(0, options, ended=True)


def test_a_missing_broker_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_KAFKA", "127.0.0.1:1")
    monkeypatch.setattr("examples.flights.replay.sender.CONNECT_S", 0.2)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit, match=r"No broker answers at 127.0.0.1:1 .*STATELOOP_KAFKA"):
        main([])
