"""The command `stateloop`: queries the named states of a query service."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console

from contracts.errors import StateloopError
from contracts.settings import read
from services.client.arguments import arguments
from services.client.client import Client
from services.client.commands import Code, Commands
from services.client.errors import InvalidAddressError, UnknownFieldError
from services.client.settings import ClientSettings

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

UNBOUNDED = 10_000
"""A width, in characters, that no line has."""


def main(given: Sequence[str]) -> int:
    """Run the command; write an error as one line with its remedy."""
    options = arguments(given)
    try:
        return asyncio.run(_run(options))
    except StateloopError as error:
        print(f"stateloop: {error}", file=sys.stderr)
        return Code.USAGE if isinstance(error, InvalidAddressError | UnknownFieldError) else Code.ERROR
    except BrokenPipeError:
        # The reader has enough, as `head` has; Python would complain at its end that it cannot write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Code.FOUND
    except KeyboardInterrupt:
        return Code.INTERRUPTED


def run() -> None:
    """Be the command."""
    sys.exit(main(sys.argv[1:]))


async def _run(options: Namespace) -> int:
    settings = read(ClientSettings)
    urls = (options.url or settings.url).split(",")
    async with Client(urls, token=settings.secret(options.token_file), discover=options.command != "states") as client:
        return await Commands(client, _console(), _write, _time).run(options)


def _console() -> Console:
    """Return the console. Lines that are piped to a program are not wrapped, unless COLUMNS sets a width."""
    is_piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=UNBOUNDED if is_piped else None)


def _write(line: str) -> None:
    print(line, flush=True)


def _time() -> str:
    return f"{datetime.now().astimezone():%H:%M:%S}"


if __name__ == "__main__":
    run()
