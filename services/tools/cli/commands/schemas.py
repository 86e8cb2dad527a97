"""`stateloop schemas`."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from services.runtime.command_line import CommandError
from services.tools.cli.commands.parameters import ApplicationName


def schemas(
    suite: Annotated[str, Parameter(name="APPLICATION", help="an application or a suite, as package.module:name")],
    folder: Path,
    /,
    *,
    application: ApplicationName = None,
) -> None:
    """Write the JSON Schema of each topic of an application into a folder.

    The applications of a suite get a folder each, of their names.
    """
    files = written(suite, application)
    for name, content in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}") from error
    print(f"wrote {', '.join(files)} to {folder}")


def written(reference: str, application: str | None = None) -> dict[str, str]:
    """Return the files by their paths in the folder, of all applications or one. Raises DeclarationError."""
    from contracts.model.suite import load_suite
    from contracts.records.schema import schemas as schemas_of

    applications = load_suite(reference).select(application)
    return {
        f"{f'{chosen.name}/' if len(applications) > 1 else ''}{name}.json": f"{_encoded(schema)}\n"
        for chosen in applications
        for name, schema in schemas_of(chosen).items()
    }


def _encoded(schema: object) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False)
