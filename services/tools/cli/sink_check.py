"""The doctor's check of a sink's store, where STATELOOP_SINK_URL configures one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from contracts.errors import StateloopError
from contracts.settings import read
from contracts.sinks import StoreUnavailableError
from services.sink.service import stores
from services.sink.settings import SinkSettings
from services.sink.stores import require_answer, store_name
from services.tools.cli.checks import Finding, failed, ok, warning

if TYPE_CHECKING:
    from contracts import Suite

SINK_URL = "STATELOOP_SINK_URL"
SUBJECT = "Store of the sink"
ANSWER_S = 5.0
REMEDY = f"start it, or correct {SINK_URL}"


async def sink_store(suite: Suite) -> Finding:
    """Check the settings of a sink, and that its store answers. Nothing is written, and no URL is printed."""
    name = "the store"
    try:
        settings = read(SinkSettings)
        states, url = ", ".join(stores(settings, suite)), settings.url()
        name = store_name(url, settings.sink_store)
        if settings.sink_store is not None:
            return warning(SUBJECT, f"{settings.sink_store} is not called here: the sink opens it at its start")
        async with asyncio.timeout(ANSWER_S):
            await require_answer(url)
    except TimeoutError:
        return failed(SUBJECT, f"{name} does not answer within {ANSWER_S:g} s: {REMEDY}")
    except StoreUnavailableError as error:
        return failed(SUBJECT, f"{name} does not answer ({error.reason}): {REMEDY}")
    except StateloopError as error:
        return failed(SUBJECT, error)
    return ok(SUBJECT, f"{name} answers; a sink writes {states}")
