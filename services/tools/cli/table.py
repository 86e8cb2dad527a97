"""Reads and writes rows of reference tables: `stateloop table put|get|list|remove`."""

from __future__ import annotations

import getpass
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from pydantic import Field

from contracts.errors import PermanentError, RetryableError
from contracts.model.suite import load_suite
from contracts.records.tables import TableRows, check_row_key, encode_row
from contracts.settings import ApplicationSettings, read
from services.runtime.command_line import ExitCode, print_line, report
from services.runtime.errors import TopicReadError
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.broker_check import require_broker
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.reader import BlockingKafkaReader
from services.runtime.table_writer import TableWriter
from services.runtime.topic_owners import TopicOwners

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contracts import Application, Table
    from contracts.records.tables import TableRow


class TableSettings(ApplicationSettings):
    """Read from the environment: STATELOOP_APPLICATION, STATELOOP_KAFKA, STATELOOP_AUTHOR."""

    author: str = Field(default_factory=getpass.getuser)
    """The user who changes rows; by default the user of the operating system."""


class UnknownTableError(PermanentError):
    """The application declares no such table."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        listed = ", ".join(known) or "none: declare one with Application(tables=(Table(…),))"
        super().__init__(f"there is no table {name!r}; tables: {listed}")


class InvalidRowError(PermanentError):
    """The model of the table rejects the value."""

    def __init__(self, table: str, key: str, problem: str) -> None:
        super().__init__(f"{table} does not take the row {key!r} ({problem})")


class TableUnreadableError(RetryableError):
    """The broker does not return the table."""

    def __init__(self, topic: str, kafka: str, problem: str) -> None:
        super().__init__(
            f"the brokers at {kafka} do not return {topic!r} ({problem}): run stateloop topics, or try again"
        )


def put_row(name: str, key: str, row: str) -> None:
    """Write a row: JSON, `@` and a file, or `-` for stdin. Raises StateloopError."""
    settings = read(TableSettings)
    application, table = _table(settings, name)
    require_broker(settings)
    _write(settings, application, table, key, _value(table, key, row, settings.author))


def remove_row(name: str, key: str) -> None:
    """Remove a row. Raises StateloopError."""
    settings = read(TableSettings)
    application, table = _table(settings, name)
    try:
        check_row_key(key)
    except ValueError as error:
        raise InvalidRowError(name, key, str(error)) from error
    require_broker(settings)
    _write(settings, application, table, key, None)


def print_row(name: str, key: str) -> ExitCode:
    """Print a row as JSON; return ABSENT if there is none. Raises StateloopError."""
    rows = _stored(name)
    if key not in rows:
        return ExitCode.ABSENT
    print_line(_line(key, rows[key]))
    return ExitCode.OK


def print_rows(name: str) -> None:
    """Print all rows as JSON, in the order of their keys. Raises StateloopError."""
    for key, row in sorted(_stored(name).items()):
        print_line(_line(key, row))


def _stored(name: str) -> Mapping[str, TableRow]:
    settings = read(TableSettings)
    application, table = _table(settings, name)
    require_broker(settings)
    return _rows(settings, table, application.topics.table(table))


def _write(settings: TableSettings, application: Application, table: Table, key: str, value: bytes | None) -> None:
    TopicOwners(application, KafkaAdmin(settings.client(), "topic-owners"), partial(report, "table")).check()
    writer = TableWriter(KafkaClients(settings.client()))
    version = writer.write(application.topics.table(table), key, value, settings.author)
    print_line(f"{table.name} {key}: version {version}")


def _table(settings: TableSettings, name: str) -> tuple[Application, Table]:
    """Return the table of this name, with its application. Raises UnknownTableError."""
    applications = load_suite(settings.application).applications
    tables = {table.name: (application, table) for application in applications for table in application.tables}
    if name not in tables:
        raise UnknownTableError(name, sorted(tables))
    return tables[name]


def _rows(settings: TableSettings, table: Table, topic: str) -> Mapping[str, TableRow]:
    """Return the present rows; each bad record is reported. Raises TableUnreadableError."""
    rows, reader = TableRows(table), BlockingKafkaReader(settings.client(), "table")
    try:
        partitions = reader.partitions([topic])
        if not partitions:
            raise TableUnreadableError(topic, settings.kafka, "there is no such topic")
        for records in reader.read(reader.bounds(partitions)):
            for record in records:
                try:
                    rows.apply(record)
                except ValueError as error:
                    place = f"offset {record.offset} of partition {record.partition}"
                    report("table", f"the record at {place} is bad: {error}")
    except TopicReadError as error:
        raise TableUnreadableError(topic, settings.kafka, error.detail) from error
    finally:
        reader.close()
    return rows.rows


def _value(table: Table, key: str, row: str, author: str) -> bytes:
    """Return the record to write. Raises InvalidRowError."""
    try:
        text = sys.stdin.read() if row == "-" else Path(row[1:]).read_text("utf-8") if row[:1] == "@" else row
        return encode_row(table, key, text, author)
    except (ValueError, OSError) as error:
        raise InvalidRowError(table.name, key, str(error)) from error


def _line(key: str, row: TableRow) -> str:
    """A row as a line of JSON."""
    line = {"key": key, "version": row.version, "author": row.author, "changed_at": row.changed_at}
    return orjson.dumps(line | {"value": row.value.model_dump(mode="json", exclude_none=True)}).decode()
