from pathlib import Path

import pytest

from contracts.metrics import CATALOGUE
from services.tools.catalogue.__main__ import BEGIN, END, main, tables


def test_each_metric_has_its_row() -> None:
    rows = tables().splitlines()
    assert [sum(f"`{metric.exported}`" in row for row in rows) for metric in CATALOGUE] == [1] * len(CATALOGUE)


def test_only_the_text_between_the_marks_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = tmp_path / "document.md"
    document.write_text(f"before\n{BEGIN}| of yesterday |\n{END}\nafter\n")
    assert main([str(document)]) == 0
    text = document.read_text()
    assert text.startswith(f"before\n{BEGIN}")
    assert text.endswith(f"{END}\nafter\n")
    assert "of yesterday" not in text
    assert "wrote" in capsys.readouterr().out


def test_errors_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = tmp_path / "document.md"
    document.write_text("no marks\n")
    assert main([str(document)]) == 1
    assert main([str(tmp_path / "missing.md")]) == 1
    assert main([]) == 1
    assert "end of metrics" in capsys.readouterr().err
    assert document.read_text() == "no marks\n"
