from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from services.cli.__main__ import COMMANDS, USAGE_ERROR, WITHOUT_SPARK, main, usage

CHECKOUT = Path(__file__).parents[3]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "services.cli", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


def test_each_command_names_a_module_that_exists() -> None:
    for name, command in COMMANDS.items():
        found = find_spec(command.module)
        assert found is not None, name
        assert found.submodule_search_locations is None or find_spec(f"{command.module}.__main__"), name


def test_help_lists_each_command_in_short_lines() -> None:
    done = run("--help")
    assert (done.returncode, done.stdout) == (0, usage() + "\n")
    assert all(name in done.stdout for name in COMMANDS)
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_without_a_command_it_prints_the_usage_and_fails() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (USAGE_ERROR, usage() + "\n")


def test_an_unknown_command_is_rejected_with_the_list() -> None:
    done = run("wacht", "flights")
    assert done.returncode == USAGE_ERROR
    assert done.stderr.startswith("stateloop: no command 'wacht'\n\nusage: stateloop COMMAND")


@pytest.mark.parametrize("arguments", [("get", "--help"), ("--json", "get", "--help")])
def test_the_client_knows_its_command_and_options_before_it(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: stateloop get")


def test_without_spark_a_command_names_the_image_that_has_it() -> None:
    hidden = "import sys; sys.modules['pyspark'] = None; from services.cli.__main__ import main; main()"
    for arguments in (("rebuild", "--help"), ("savepoint", "--help"), ("job",)):
        command = [sys.executable, "-c", hidden, *arguments]
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == f"stateloop {arguments[0]}: {WITHOUT_SPARK}\n"
    assert "image stateloop-spark" in WITHOUT_SPARK


def test_a_part_gets_the_arguments_after_its_name_and_its_exit_code_is_kept() -> None:
    done = run("graph", "examples.flights.nowhere:app")
    assert done.returncode == 1
    assert "examples.flights.nowhere" in done.stderr


@pytest.mark.parametrize("name", ["topics", "job", "worker", "derive", "sink", "query", "broker", "doctor"])
def test_a_command_that_has_settings_only_does_not_start_when_it_is_asked_for_help(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, code in (["--help"], 0), (["-h"], 0), (["--partitions", "3"], USAGE_ERROR):
        monkeypatch.setattr(sys, "argv", ["stateloop", name, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        output = capsys.readouterr()
        assert ended.value.code == code
        assert f"usage: stateloop {name}" in (output.err if code else output.out)


def test_arguments_reach_the_part() -> None:
    done = run("redrive", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: stateloop redrive")


def test_the_application_may_be_a_module_of_the_working_directory(tmp_path: Path) -> None:
    here, script = tmp_path / "here", tmp_path / "bin" / "stateloop"
    here.mkdir()
    script.parent.mkdir()
    (here / "own.py").write_text((CHECKOUT / "examples/scooters/application.py").read_text(encoding="utf-8"))
    script.write_text("from services.cli.__main__ import main\n\nmain()\n")  # as an installed command is
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, str(script), "graph", "own:app"]
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "place" in done.stdout) == (0, True), done.stderr
