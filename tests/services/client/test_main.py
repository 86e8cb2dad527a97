"""The command: its output and its exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from services.tools.cli.__main__ import main
from tests.deadline import DEADLINE_S
from tests.services.client.fake_service import Fake, entry, problem, problem_response
from tests.services.client.streaming import Streaming, message
from tests.services.client.test_watch import KEY, PLACE, answer_json

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("STATELOOP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """Let processes receive SIGINT, also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


async def command(*arguments: str, url: str) -> int:
    """Run the command in a thread, for it starts an event loop, and return the exit code."""
    return await asyncio.to_thread(main, [*arguments, "--url", url])


async def process(*arguments: str, url: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.tools.cli", *arguments, "--url", url, stdout=-1, stderr=-1
    )


async def test_get_prints_the_state(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.put(entry(KEY, 7, delay={"minutes": 5}, gate=None))
    assert await command("get", "flights", KEY, "--fields", "state.status, state.delay", url=fake.url) == 0
    output = capsys.readouterr().out
    assert "UA/1545  version 7  1.2 s old  window of 2026-01-01 12:00:00 UTC" in output
    assert "snapshots/" in output
    assert "offset 7, from q1 (owner, 3 behind)" in output
    assert [line.split() for line in output.splitlines()[2:]] == [
        ["device_id", KEY],
        ["state.status", "landed"],
        ["state.delay.minutes", "5"],
    ]
    assert fake.requests == ["/v1/states/flights/UA%2F1545?fields=state.status%2Cstate.delay"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("state.statsu", "no field 'state.statsu': write state.status (known: state.status, state.delay, state.gate)"),
        ("status", "no field 'status': write one of the known fields (known: device_id, state)"),
        ("state.delay.hours", "(known: state.delay.minutes)"),
        ("state.gate.letter", "(known: none, for 'state.gate' is a single value)"),
    ],
)
async def test_get_rejects_an_unknown_field(
    fake: Fake, capsys: pytest.CaptureFixture[str], path: str, message: str
) -> None:
    fake.put(entry(KEY, 7))
    assert await command("get", "flights", KEY, "--fields", f"state.status,{path}", url=fake.url) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.out == ""


async def test_get_accepts_a_field_missing_in_the_record(fake: Fake) -> None:
    fake.put(entry(KEY, 7))
    assert await command("get", "flights", KEY, "--fields", "state.delay.minutes,state.gate", url=fake.url) == 0


@pytest.mark.parametrize("before", [["--url", "{url}"], ["--json", "--url", "{url}"]], ids=str)
async def test_common_options_may_stand_before_the_subcommand(
    fake: Fake, capsys: pytest.CaptureFixture[str], before: list[str]
) -> None:
    fake.put(entry(KEY, 7))
    given = [word.format(url=fake.url) for word in before]
    assert await asyncio.to_thread(main, [*given, "get", "flights", KEY]) == 0
    assert capsys.readouterr().out.startswith("{" if "--json" in before else KEY)


async def test_get_reports_never_seen_and_expired_keys(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.put({**problem("expired", 410, state="flights", key="old", window_start="2026-01-01T12:00:00Z")})
    assert await command("get", "flights", "absent", url=fake.url) == 3
    assert "absent  it is never_seen" in capsys.readouterr().out
    assert await command("get", "flights", "old", url=fake.url) == 4
    assert "old  it is expired\nwindow_start 2026-01-01T12:00:00Z" in capsys.readouterr().out
    assert await command("get", "flights", "old", "--json", url=fake.url) == 4
    assert json.loads(capsys.readouterr().out)["result"] == "expired"


async def test_get_writes_json(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.put(entry(KEY, 7))
    assert await command("get", "flights", KEY, "--version", "7", "--json", url=fake.url) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["result"], found["version"], found["age_s"]) == ("found", 7, 1.234)
    assert found["value"]["state"] == {"status": "landed"}
    assert fake.requests == ["/v1/states/flights/UA%2F1545?as_of=7"]


@pytest.mark.parametrize("tag", ["1767268800000.1767225600000.7", "1767268800000.1767225600000.7.closed"])
async def test_get_names_a_version_by_its_tag(fake: Fake, capsys: pytest.CaptureFixture[str], tag: str) -> None:
    fake.put(entry(KEY, 7, epoch=1_767_225_600_000))
    assert await command("get", "flights", KEY, "--min-version", tag, url=fake.url) == 0
    assert "UA/1545  version 7  1.2 s old  epoch 1767225600000  window of" in capsys.readouterr().out
    assert await command("get", "flights", KEY, "--version", tag, "--json", url=fake.url) == 0
    assert json.loads(capsys.readouterr().out)["epoch"] == 1_767_225_600_000
    assert fake.requests == [f"/v1/states/flights/UA%2F1545?{name}={tag}" for name in ("min_version", "as_of")]


async def test_get_waits_for_an_event(fake: Fake) -> None:
    fake.put(entry(KEY, 7))
    assert await command("get", "flights", KEY, "--min-offset", "2:1047", "--wait", "5", url=fake.url) == 0
    assert fake.requests == ["/v1/states/flights/UA%2F1545?min_offset=2%3A1047&wait=5.0"]


async def test_get_without_a_version_or_an_offset_refuses_to_wait(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command("get", "flights", KEY, "--wait", "5", url=fake.url) == 2
    assert "--wait needs --min-version or --min-offset" in capsys.readouterr().err
    assert not fake.requests


async def test_piped_lines_of_a_table_end_with_their_last_value(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.put(entry(KEY, 7, gate="x" * 60))
    assert await command("get", "flights", KEY, url=fake.url) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "state.status  landed" in lines
    assert f"state.gate    {'x' * 60}" in lines


@pytest.mark.parametrize("position", ["1047", "2:", ":1047", "2:x", "-2:1"])
async def test_get_rejects_an_invalid_partition_and_offset(
    fake: Fake, capsys: pytest.CaptureFixture[str], position: str
) -> None:
    assert await command("get", "flights", KEY, f"--min-offset={position}", url=fake.url) == 2
    assert "write partition and offset of the event, as 2:1047" in capsys.readouterr().err


async def test_keys_are_printed_line_by_line(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.put(*(entry(f"k{number}", 1) for number in range(5)), entry("[bold]", 1))
    assert await command("keys", "flights", "--where", "state.status:landed", url=fake.url) == 0
    assert capsys.readouterr().out.splitlines() == ["[bold]", "k0", "k1", "k2", "k3", "k4"]
    assert await command("keys", "flights", "--prefix", "k4", "--json", url=fake.url) == 0
    assert capsys.readouterr().out == '"k4"\n'


async def test_keys_are_as_they_are_in_a_pipe_and_control_no_terminal(
    fake: Fake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.put(entry("k\x1b]0;owned", 1, gate="\x9b2J"))
    assert await command("keys", "flights", url=fake.url) == 0
    assert capsys.readouterr().out == "k\x1b]0;owned\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert await command("keys", "flights", url=fake.url) == 0
    assert capsys.readouterr().out == "k\\x1b]0;owned\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert await command("get", "flights", "k\x1b]0;owned", url=fake.url) == 0
    output = capsys.readouterr().out
    assert output.startswith(r"k\x1b]0;owned  version 1")
    assert r"\x9b2J" in output


async def test_states_are_printed_as_a_table(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    assert await command("states", url=fake.url) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["state", "keys", "partitions", "lag"], ["flights", "7", "4", "2"], ["cities", "7", "4", "2"]]
    assert await command("states", "--json", url=fake.url) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["name"] == "flights"


async def test_an_error_is_printed_as_one_line(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.always = problem_response("unknown_state", 404)
    assert await command("get", "fights", "k", url=fake.url) == 1
    assert capsys.readouterr().err == "stateloop get: fights/k was refused (404): it is unknown_state\n"
    assert await command("get", "flights", "k", url="localhost") == 2


WRONG = [
    [],
    ["get", "flights"],
    ["watch", "flights"],
    ["watch", "flights", "k", "--prefix", "p"],
    ["get", "flights", "k", "--version", "x"],
    ["get", "flights", "k", "--wait", "-1"],
    ["get", "flights", "k", "--version", "7", "--wait", "5"],
    ["keys", "flights", "--where", "status"],
    ["get", "flights", "k", "--token", "secret"],
    ["--token", "secret", "get", "flights", "k"],
]


@pytest.mark.parametrize("arguments", WRONG)
def test_invalid_arguments_are_rejected(arguments: list[str]) -> None:
    assert main(arguments) == 2


async def test_the_token_comes_from_a_file_or_the_environment(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STATELOOP_TOKEN", "spoken")
    await command("get", "flights", "k", url=fake.url)
    (tmp_path / "token").write_text("written\n")
    await command("get", "flights", "k", "--token-file", str(tmp_path / "token"), url=fake.url)
    assert fake.tokens == {"Bearer spoken", "Bearer written"}
    (tmp_path / "token").write_text("two\nlines")
    for path in ("token", "none"):
        assert await command("get", "flights", "k", "--token-file", str(tmp_path / path), url=fake.url) == 1
    errors = capsys.readouterr().err
    assert "more than one line" in errors
    assert "No such file" in errors
    assert "lines)" not in errors.replace("one line)", "")  # the secret itself is not printed


async def test_watch_prints_changes_until_it_is_interrupted(streaming: Streaming) -> None:
    running = await process("watch", "flights", KEY, url=streaming.url)
    assert running.stdout
    assert running.stderr
    opened = await streaming.connection(0)
    after = answer_json(2)
    after["value"] = {"device_id": KEY, "state": {"status": "cancelled"}}
    opened.send(message(answer_json(1)), message(after), message(PLACE, kind="expired"))
    async with asyncio.timeout(DEADLINE_S):
        lines = [(await running.stdout.readline()).decode().split(maxsplit=1)[1].rstrip() for _ in range(3)]
        running.send_signal(signal.SIGINT)
        assert await running.wait() == 130
        assert await running.stderr.read() == b""
    assert lines == [
        f"{KEY}  v1  state.status landed",
        f"{KEY}  v2  state.status landed → cancelled",
        f"{KEY}  expired",
    ]


async def test_watch_of_a_prefix_writes_json(streaming: Streaming) -> None:
    running = await process("watch", "flights", "--prefix", "UA/", "--json", url=streaming.url)
    assert running.stdout
    opened = await streaming.connection(0)
    opened.send(message(answer_json(1)), message(PLACE, kind="left"))
    async with asyncio.timeout(DEADLINE_S):
        lines = [json.loads(await running.stdout.readline()) for _ in range(2)]
        running.terminate()
        await running.wait()
    assert [line["result"] for line in lines] == ["found", "left"]


async def test_a_closed_pipe_is_no_error(fake: Fake) -> None:
    fake.put(*(entry(f"{'k' * 500}{number:04}", 1) for number in range(2000)))
    running = await process("keys", "flights", url=fake.url)
    assert running.stdout
    assert running.stderr
    async with asyncio.timeout(DEADLINE_S):
        await running.stdout.readline()
        running._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]  # noqa: SLF001
        assert await running.wait() == 0
        assert await running.stderr.read() == b""
