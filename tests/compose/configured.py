"""The configuration that docker compose reads from its files, and the variables that pin versions in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

Service = dict[str, Any]

ROOT = Path(__file__).parents[2]


def configured(*files: str, root: Path = ROOT) -> dict[str, Service]:
    """The services of compose.yaml and of the files on top of it; nothing may be complained of."""
    compose = str(Path(sys.executable).with_name("docker-compose"))
    named = [f"--file={root / file}" for file in ("compose.yaml", *files)]
    bare = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    command = [compose, *named, "config", "--format=json"]
    done = subprocess.run(command, cwd=root, env=bare, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    found: dict[str, Service] = json.loads(done.stdout)["services"]
    return found


def query_token() -> str:
    """Return the token of the query service."""
    (here,) = json.loads((ROOT / "deploy" / "query" / "tokens.json").read_text(encoding="utf-8"))["tokens"]
    return str(here["token"])


def variables() -> dict[str, str]:
    """Return the variables of .env."""
    lines = (ROOT / ".env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
