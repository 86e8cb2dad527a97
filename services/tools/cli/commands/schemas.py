"""`stateloop schemas`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from services.runtime.command_line import CommandError
from services.tools.cli.commands.parameters import ApplicationName

if TYPE_CHECKING:
    from contracts import Application


def schemas(
    suite: Annotated[str, Parameter(name="APPLICATION", help="an application or a suite, as package.module:name")],
    folder: Path,
    /,
    *,
    application: ApplicationName = None,
) -> None:
    """Write the JSON Schemas of an application's records into a folder.

    Tables, alerts and derived states are in `states/`. The applications of a suite get a folder each, of their names.
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

    applications = load_suite(reference).select(application)
    return {
        f"{f'{chosen.name}/' if len(applications) > 1 else ''}{name}.json": f"{_encoded(schema)}\n"
        for chosen in applications
        for name, schema in _schemas(chosen).items()
    }


def _schemas(application: "Application") -> dict[str, Any]:
    """Return the schemas of the topics that every application has, and of those that it declares."""
    from contracts.records.named_states import named
    from contracts.records.schema import schemas as schemas_of

    others = {application.name, *(state.name for state in application.states)}
    declared = {name: state.schema for name, state in named(application).items() if name not in others}
    return schemas_of(application) | {f"states/{name}": schema for name, schema in declared.items()}


def _encoded(schema: object) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False)
