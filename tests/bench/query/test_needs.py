"""Programs that the benchmark needs."""

from __future__ import annotations

import pytest

from bench.query.needs import ProgramMissingError, require


def ignore(what: str) -> None:
    assert what


def test_installed_programs_are_not_installed_again() -> None:
    require((), ignore)


def test_without_root_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ProgramMissingError, match=r"wrk, redis-benchmark missing .* apt-get install redis-tools wrk"):
        require(("wrk", "redis-benchmark"), ignore)


def test_a_program_that_cannot_be_installed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: "/bin/false" if name == "apt-get" else None)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: Failed())
    with pytest.raises(ProgramMissingError, match="Unable to locate package wrk"):
        require(("wrk",), ignore)


class Failed:
    returncode = 100
    stdout = "E: Unable to locate package wrk"
