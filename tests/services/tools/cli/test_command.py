"""The frame of the commands: help, arguments, errors, exit codes and completion."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from contracts.records.record import Reason
from services.runtime.command_line import CommandError, ExitCode, UsageError, run
from services.runtime.errors import TopicReadError
from services.tools.cli.__main__ import command_first, main
from services.tools.cli.app import WITHOUT_SPARK
from services.tools.cli.command_table import COMMANDS, GROUPS
from services.tools.cli.commands.archive import BATCH
from services.tools.cli.commands.redrive import REASONS
from spark_app.lifecycle.archive import BATCH as BATCH_OF_ARCHIVE
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKOUT = Path(__file__).parents[4]
HEAVY = {"aiohttp", "confluent_kafka", "contracts", "lmdb", "pydantic", "pyspark", "spark_app", "uvloop"}
SETTINGS_ONLY = [name for name, command in COMMANDS.items() if not command.takes_arguments]
GRAPH = "examples.flights.application:app"
OF_SPARK = (
    ("up", "--headless"),
    ("job",),
    ("doctor",),
    ("bootstrap", "file"),
    ("rebuild",),
    ("savepoint", "list", "folder"),
    ("archive", "folder"),
    ("state", "get", "key"),
    ("verify",),
)
"""The commands that the image of the services cannot run."""


def stateloop(*arguments: str, before: str = "pass") -> subprocess.CompletedProcess[str]:
    code = f"import sys; {before}; from services.tools.cli.__main__ import main; code = main()"
    command = [sys.executable, "-c", f"{code}; print(*sys.modules, file=sys.stderr); sys.exit(code)", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


def test_each_command_is_a_function_or_an_app_that_exists() -> None:
    for name, command in COMMANDS.items():
        module, _, attribute = command.target.partition(":")
        assert callable(getattr(import_module(module), attribute)), name


@pytest.mark.parametrize("arguments", [(), ("--version",), *((name,) for name in COMMANDS)], ids=" ".join)
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    done = stateloop(*arguments, "--help")
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert done.returncode == 0
    assert loaded & HEAVY == set()
    assert {"services", "cyclopts"} <= loaded


def test_help_lists_each_command_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert all(f"{name} {command.help}" in output for name, command in COMMANDS.items())
    assert [title for title in GROUPS if title in output] == list(GROUPS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_its_usage_in_short_lines(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([name, "--help"], [name, "-h"], ["help", name]):
        assert main(arguments) == 0
        output = capsys.readouterr().out
        assert f"Usage: stateloop {name}" in output
        assert max(map(len, output.splitlines())) <= 100


@pytest.mark.parametrize("name", SETTINGS_ONLY)
def test_a_command_that_has_settings_only_takes_no_argument(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert "docs/reference/settings.md" in capsys.readouterr().out
    for argument in ("--partitions", "x"):
        assert main([name, argument]) == ExitCode.USAGE
        assert_one_line(name, capsys)


def test_without_a_command_it_prints_the_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ExitCode.USAGE
    assert "Run the loop" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["wacht", "flights"], '"watch"'),
        (["savepoint", "crate", "x"], '"create"'),
        (["get", "a", "b", "--jsno"], "--json"),
    ],
)
def test_a_misspelt_command_or_option_is_refused_with_the_nearest_one(
    arguments: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.USAGE
    name = arguments[0] if arguments[0] in COMMANDS else ""
    assert f"Did you mean {suggestion}?" in assert_one_line(name, capsys)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["savepoint"], "write one of create, list, restore"),
        (["savepoint", "--application", "x"], "Unknown"),
        (["table", "--help-me"], "Unknown"),
        (["graph"], "APPLICATION"),
        (["archive", "folder", "--batch", "0"], "--batch: write 1 or more. `stateloop archive --help` lists"),
        (["state", "export", "folder", "--format", "csv"], "parquet"),
        (["verify", "--sample", "x"], "--sample"),
        (["redrive", "list", "--reason", "bad"], "malformed"),
        (["watch", "flights", "key", "--window", "all", "--silent-for", "5s"], "exclude each other"),
        (["get", "flights", "key", "--version", "1", "--min-version", "1"], "exclude each other"),
        (["get", "flights", "\udcff"], "write it in UTF-8"),
        (["keys", "flights", "--where", "status:\udcff"], "write it in UTF-8"),
    ],
    ids=lambda parameter: " ".join(parameter) if isinstance(parameter, list) else "",
)
def test_wrong_arguments_end_with_2_and_a_line_that_names_the_problem(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.USAGE
    assert problem in assert_one_line(arguments[0], capsys)


def assert_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"stateloop {name}: " if name else "stateloop: ")
    return line


@pytest.mark.parametrize("broken", [("pyspark",), ("pyspark", "spark_app")], ids=" ".join)
def test_without_spark_a_command_names_the_image_that_has_it(broken: tuple[str, ...]) -> None:
    before = f"sys.modules.update(dict.fromkeys({broken}))"
    for arguments in OF_SPARK:
        done = stateloop(*arguments, before=before)
        assert done.returncode == ExitCode.ERROR
        assert done.stderr.splitlines()[0] == f"stateloop {arguments[0]}: {WITHOUT_SPARK}"
    assert "image stateloop-spark" in WITHOUT_SPARK


def test_the_version_is_that_of_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "services.tools.cli", "--version"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("stateloop ")


def test_options_of_the_queries_may_stand_before_the_command() -> None:
    arguments = ["--json", "--url=here", "--token-file", "token", "get", "flights", "key", "--url", "there"]
    assert command_first(arguments) == [
        "get",
        *("--json", "--url=here", "--token-file", "token"),
        *("flights", "key", "--url", "there"),
    ]


def test_constants_that_help_needs_are_those_of_the_code() -> None:
    assert set(REASONS) == set(Reason)
    assert BATCH == BATCH_OF_ARCHIVE


def fails(error: BaseException) -> Callable[[], int]:
    def command() -> int:
        raise error

    return command


READ = TopicReadError("events", "CODE", "detail")


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (READ, ExitCode.ERROR, str(READ)),
        (ExceptionGroup("all", [READ, ExceptionGroup("some", [READ])]), ExitCode.ERROR, f"{READ}; {READ}"),
        (CommandError("two\nlines"), ExitCode.ERROR, "two lines"),
        (UsageError("write it"), ExitCode.USAGE, "write it"),
        (CommandError("stopped", ExitCode.INTERRUPTED), ExitCode.INTERRUPTED, "stopped"),
    ],
)
def test_an_error_of_the_product_is_one_line(
    error: Exception, code: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("name", fails(error)) == code
    assert capsys.readouterr().err == f"stateloop name: {printed}\n"


def test_ctrl_c_ends_with_130_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("name", fails(KeyboardInterrupt())) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_service_cleanly(number: signal.Signals) -> None:
    environment = os.environ | {"STATELOOP_APPLICATION": GRAPH, "STATELOOP_KAFKA": "127.0.0.1:1"}
    command = [sys.executable, "-m", "services.tools.cli", "derive"]
    environment |= {"STATELOOP_HTTP_PORT": "0"}
    with subprocess.Popen(command, cwd=CHECKOUT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("stateloop derive: {")
        process.send_signal(number)
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0


@pytest.mark.parametrize(
    "error", [RuntimeError("a bug"), ExceptionGroup("all", [READ, RuntimeError()]), BrokenPipeError()]
)
def test_another_error_is_not_hidden(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        run("name", fails(error))
    assert raised.value is error


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("stateloop", "sav"), ("savepoint",)),
        (("stateloop", "savepoint", ""), ("create", "list", "restore")),
        (("stateloop", "rebuild", "--dr"), ("--dry-run",)),
        (("stateloop", "redrive", "list", "--reason", "mal"), ("malformed",)),
    ],
    ids=" ".join,
)
def test_bash_completes_commands_and_options(words: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path) -> None:
    script = tmp_path / "stateloop"
    script.write_text(stateloop("completion", "bash").stdout, encoding="utf-8")
    listed = " ".join(f"'{word}'" for word in words)
    code = (
        f"source {script}; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; "
        "$(complete -p stateloop | sed -E 's/.*-F ([^ ]+).*/\\1/'); printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["/bin/bash", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert set(expected) <= {word.strip() for word in done.stdout.splitlines()}, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_there_is_a_script_for_other_shells(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert all(name in capsys.readouterr().out for name in ("savepoint",))


def test_the_application_may_be_a_module_of_the_working_directory(tmp_path: Path) -> None:
    here, script = tmp_path / "here", tmp_path / "bin" / "stateloop"
    here.mkdir()
    script.parent.mkdir()
    (here / "own.py").write_text((CHECKOUT / "examples/scooters/application.py").read_text(encoding="utf-8"))
    script.write_text(
        "import sys\nfrom services.tools.cli.__main__ import main\n\nsys.exit(main())\n"
    )  # as an installed one
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(script), "graph", "own:app"]
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "place" in done.stdout) == (0, True), done.stderr
