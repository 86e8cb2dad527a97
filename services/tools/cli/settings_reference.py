"""Writes the reference of settings: `python -m services.tools.cli.settings_reference docs/reference/settings.md`."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import PydanticUndefined

from contracts.settings import (
    PREFIX,
    ApplicationSettings,
    EndpointSettings,
    KafkaSettings,
    WorkerLimitSettings,
    WorkerSettings,
)
from services.client.settings import ClientSettings
from services.enrichment.settings import ApiSettings, EnrichmentSettings
from services.query.settings import QuerySettings
from services.sink.settings import SinkSettings
from services.tools.broker.settings import BrokerSettings, JarsSettings
from services.tools.cli.table import TableSettings
from services.tools.launcher.settings import LauncherSettings
from services.tools.live.show import LiveSettings
from services.tools.reference import fields
from services.tools.topics.settings import TopicsSettings
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo
    from pydantic_settings import BaseSettings


class Section(NamedTuple):
    """A part of the page: the settings that these models declare themselves."""

    title: str
    text: str
    models: tuple[type[BaseSettings], ...]


HEAD = """# Settings

`python -m services.tools.cli.settings_reference docs/reference/settings.md` generates this page from the code.

Each service reads its settings from environment variables with the prefix `STATELOOP_`. All services share one
environment, so each service accepts the variables of the others. It rejects a variable with the prefix that no service
reads, and suggests the nearest name. A duration is a number of seconds or ISO 8601. The settings of an application need
another prefix.
"""
SECTIONS = (
    Section("All services", "", (KafkaSettings, ApplicationSettings)),
    Section("Endpoints", "Of the job and the workers, the derive worker and sinks included.", (EndpointSettings,)),
    Section("The job", "", (JobSettings,)),
    Section(
        "Workers",
        "Of enrichment workers, derive workers and sinks; only the first two of derive workers.",
        (WorkerSettings, WorkerLimitSettings),
    ),
    Section("Calls of APIs", "Of the enrichment workers and the redrive command.", (ApiSettings,)),
    Section("Enrichment workers", "", (EnrichmentSettings,)),
    Section("Sinks", "", (SinkSettings,)),
    Section("The query service", "", (QuerySettings,)),
    Section("The command that creates topics", "", (TopicsSettings,)),
    Section("The table command", "", (TableSettings,)),
    Section("The client", "Of the commands that query, and of the Python client.", (ClientSettings,)),
    Section("The embedded broker", "", (JarsSettings, BrokerSettings)),
    Section("make up", "", (LauncherSettings,)),
    Section("The live view", "", (LiveSettings,)),
)
TABLE = "| variable | default | meaning |\n|---|---|---|\n"
UNITS = {"min": timedelta(minutes=1), "s": timedelta(seconds=1), "ms": timedelta(milliseconds=1)}


def page() -> str:
    """Return the whole page."""
    return "\n".join((HEAD, *map(_section, SECTIONS)))


def _section(section: Section) -> str:
    rows = "".join(f"{row}\n" for model in section.models for row in _rows(model))
    text = f"{section.text}\n\n" if section.text else ""
    return f"## {section.title}\n\n{text}{TABLE}{rows}"


def _rows(model: type[BaseSettings]) -> Iterator[str]:
    """Yield a row of each setting that the model declares itself."""
    for name, _, _, meaning in fields(model):
        field = model.model_fields[name]
        text = " ".join((meaning or field.description or "").split()).replace("|", "\\|")
        yield f"| `{PREFIX}{name.upper()}` | {_default(field)} | {text} |"


def _default(field: FieldInfo) -> str:
    """Return the default as a user would write it, or where it comes from."""
    if field.default_factory is not None:
        return "none" if field.default_factory is dict else "see the meaning"
    if field.default is PydanticUndefined:
        return "required"
    return _spelled(field.default)


def _spelled(value: Any) -> str:
    if value is None or value in ({}, (), ""):
        return "none"
    if isinstance(value, timedelta):
        unit = next(unit for unit, size in UNITS.items() if not value % size)
        return f"{value // UNITS[unit]} {unit}"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
