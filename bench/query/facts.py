"""The settings of a service at its start: a free port, and a folder of its own."""

from __future__ import annotations

import shutil
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.harness.plan import Site


@contextmanager
def service_facts(site: Site, name: str) -> Iterator[dict[str, str]]:
    """The facts of one run; its data last as long, so that it finds them when it is started again."""
    data = site.folder / "run" / f"{name}-data"
    data.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    try:
        yield {"port": str(port), "data": str(data), "group": name}
    finally:
        shutil.rmtree(data, ignore_errors=True)
