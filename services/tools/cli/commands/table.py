"""`stateloop table put|get|list|remove`."""

from typing import Annotated

from cyclopts import App, Parameter

table = App(name="table", help="Rows of the reference tables that STATELOOP_APPLICATION declares.")


@table.command
def put(table: str, key: str, json: Annotated[str, Parameter(allow_leading_hyphen=True)], /) -> None:
    """Write a row, in place of the former one of its key.

    JSON is the row; @FILE reads a file, and - the standard input.
    """
    from services.tools.cli.table import put_row

    put_row(table, key, json)


@table.command
def get(table: str, key: str, /) -> int:
    """Print a row as a line of JSON."""
    from services.tools.cli.table import print_row

    return print_row(table, key)


@table.command(name="list")
def listing(table: str, /) -> None:
    """Print all rows as JSON lines."""
    from services.tools.cli.table import print_rows

    print_rows(table)


@table.command
def remove(table: str, key: str, /) -> None:
    """Remove a row."""
    from services.tools.cli.table import remove_row

    remove_row(table, key)
