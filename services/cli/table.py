"""Reads and writes rows of reference tables: `stateloop table put|get|list|remove`."""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from confluent_kafka import KafkaException
from pydantic import Field

from contracts.errors import PermanentError, RetryableError, StateloopError
from contracts.model.suite import load_suite
from contracts.records.tables import TableRows, encode_row
from contracts.settings import KafkaSettings, read
from services.runtime.broker_check import require_broker
from services.runtime.table_writer import TableWriter
from services.runtime.topic_owners import TopicOwners
from services.runtime.topic_reader import TopicReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contracts import Application, Table
    from contracts.records.tables import TableRow

ABSENT = 3
"""The exit code where the table has no such row, as that of `stateloop get`."""


class TableSettings(KafkaSettings):
    """Read from the environment: STATELOOP_APPLICATION, STATELOOP_KAFKA, STATELOOP_AUTHOR."""

    application: str
    """The application, or the suite of applications, as package.module:name."""
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


def main(given: Sequence[str]) -> int:
    """Run the command: 0. Return 1 after an error, which is printed in one line, and 3 for an absent row."""
    options = _options(given)
    try:
        settings = read(TableSettings)
        application, table = _table(settings, options.table)
        topic = application.topics.table(table)
        require_broker(settings)
        if options.command in ("get", "list"):
            lines = [
                _line(key, row)
                for key, row in sorted(_rows(settings, table, topic).items())
                if options.command == "list" or key == options.key
            ]
            print("\n".join(lines), end="\n" if lines else "")
            return 0 if lines or options.command == "list" else ABSENT
        TopicOwners(application, settings.client(), _warn).check()
        value = _value(table, options, settings.author) if options.command == "put" else None
        version = TableWriter(settings.client()).write(topic, options.key, value, settings.author)
        print(f"{table.name} {options.key}: version {version}")
    except StateloopError as error:
        _warn(str(error))
        return 1
    return 0


def _table(settings: TableSettings, name: str) -> tuple[Application, Table]:
    """Return the table of this name, with its application. Raises UnknownTableError."""
    tables = {table.name: (one, table) for one in load_suite(settings.application).applications for table in one.tables}
    if name not in tables:
        raise UnknownTableError(name, sorted(tables))
    return tables[name]


def _rows(settings: TableSettings, table: Table, topic: str) -> Mapping[str, TableRow]:
    """Return the present rows; each bad record is reported. Raises TableUnreadableError."""
    found, reader = TableRows(table), TopicReader(settings.client(), "table")
    try:
        partitions = reader.partitions([topic])
        if not partitions:
            raise TableUnreadableError(topic, settings.kafka, "there is no such topic")
        for records in reader.read_to_end(partitions):
            for record in records:
                try:
                    found.apply(record)
                except ValueError as error:
                    _warn(f"the record at offset {record.offset} of partition {record.partition} is bad: {error}")
    except KafkaException as error:
        raise TableUnreadableError(topic, settings.kafka, error.args[0].str()) from error
    finally:
        reader.close()
    return found.rows


def _value(table: Table, options: argparse.Namespace, author: str) -> bytes:
    """Return the record to write. Raises InvalidRowError."""
    given: str = options.value
    try:
        text = sys.stdin.read() if given == "-" else Path(given[1:]).read_text("utf-8") if given[:1] == "@" else given
        return encode_row(table, options.key, text, author)
    except (ValueError, OSError) as error:
        raise InvalidRowError(table.name, options.key, str(error)) from error


def _line(key: str, row: TableRow) -> str:
    """A row as a line of JSON."""
    line = {"key": key, "version": row.version, "author": row.author, "changed_at": row.changed_at}
    return orjson.dumps(line | {"value": row.value.model_dump(mode="json", exclude_none=True)}).decode()


def _warn(line: str) -> None:
    print(f"stateloop table: {line}", file=sys.stderr)


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="stateloop table", description="Rows of the reference tables that STATELOOP_APPLICATION declares."
    )
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")
    put = commands.add_parser("put", help="write a row, in place of the former one of its key")
    get = commands.add_parser("get", help="print a row as a line of JSON")
    listing = commands.add_parser("list", help="print all rows as JSON lines")
    remove = commands.add_parser("remove", help="remove a row")
    for command in (put, get, listing, remove):
        command.add_argument("table", metavar="TABLE")
    for command in (put, get, remove):
        command.add_argument("key", metavar="KEY")
    put.add_argument("value", metavar="JSON", help="the row; @FILE reads a file, and - the standard input")
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
