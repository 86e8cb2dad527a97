from __future__ import annotations

from typing import TYPE_CHECKING

from services.tools.cli.__main__ import main as stateloop

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FLIGHTS = "examples.flights.application:app"
SUITE = "examples.departures.application:suite"


def main(arguments: list[str]) -> int:
    return stateloop(["graph", *arguments])


def test_it_prints_the_graph(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([FLIGHTS]) == 0
    assert "└─ route " in capsys.readouterr().out


def test_it_writes_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([FLIGHTS, "--svg", str(tmp_path / "graph.svg")]) == 0
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "wrote" in capsys.readouterr().out


def test_errors_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no.such.module:app"]) == 1
    assert "Write package.module:name" in capsys.readouterr().err
    assert main([FLIGHTS, "--svg", str(tmp_path / "none" / "graph.svg")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_suite_has_a_graph_for_each_application_and_a_picture_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([SUITE]) == 0
    output = capsys.readouterr().out
    assert [name for name in ("flights", "departures", "carriers") if f"{name}\n\n" in output] == [
        "flights",
        "departures",
        "carriers",
    ]
    svg = str(tmp_path / "graph.svg")
    assert main([SUITE, "--svg", svg]) == 1
    assert "Write --application with one of flights, departures, carriers" in capsys.readouterr().err
    assert main([SUITE, "--application", "flights", "--svg", svg]) == 0
    assert main([SUITE, "--application", "flihgts"]) == 1
    assert "Name one of these: flights, departures, carriers" in capsys.readouterr().err
