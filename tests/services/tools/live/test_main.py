from __future__ import annotations

import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

CHECKOUT = Path(__file__).parents[4]


COMMAND = [sys.executable, "-m", "services.tools.cli", "live"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("STATELOOP_")}


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    variables = ENVIRONMENT | environment
    return subprocess.run(COMMAND, cwd=CHECKOUT, env=variables, capture_output=True, text=True, check=False)


def test_an_invalid_setting_is_one_line() -> None:
    done = run(STATELOOP_LINE_EVERY="nonsense")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "stateloop live: STATELOOP_LINE_EVERY: " in line


def test_a_token_file_that_is_missing_is_one_line() -> None:
    done = run(STATELOOP_TOKEN_FILE="missing")  # noqa: S106
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("stateloop live: the token cannot be read from missing")


def test_it_sends_the_token_of_the_file(tmp_path: Path) -> None:
    tokens: list[str | None] = []

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers["Authorization"])
            self.send_error(503)

    path = tmp_path / "token"
    path.write_text("secret\n", encoding="utf-8")
    with HTTPServer(("127.0.0.1", 0), Service) as service:
        variables = {"STATELOOP_URL": f"http://127.0.0.1:{service.server_port}", "STATELOOP_TOKEN_FILE": str(path)}
        command = subprocess.Popen(COMMAND, cwd=CHECKOUT, env=ENVIRONMENT | variables, stdout=subprocess.DEVNULL)
        service.handle_request()
        command.send_signal(signal.SIGTERM)
        command.wait()
    assert set(tokens) == {"Bearer secret"}
