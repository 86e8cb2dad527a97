"""Applications on the topics of one test: RIVALS_NAME, RIVALS_PREFIX and RIVALS_EVENTS choose them."""

from __future__ import annotations

import os

from contracts import Application, Topics
from tests.e2e.windows import app as windows


def rival(name: str, prefix: str, events: str = "") -> Application:
    """Return an application with this name on the topics with this prefix."""
    return Application(
        name=name,
        event=windows.event,
        state=windows.state,
        enrichments=windows.enrichments,
        topics=Topics(prefix=prefix, partitions=2, events=events),
        derived=windows.derived,
    )


app = rival(
    os.environ.get("RIVALS_NAME", "first"), os.environ.get("RIVALS_PREFIX", ""), os.environ.get("RIVALS_EVENTS", "")
)
