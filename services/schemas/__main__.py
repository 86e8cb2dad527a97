"""Write the JSON Schema of each topic of an application into a folder.

The applications of a suite get a folder each, of their names.
"""

import argparse
import json
import sys
from pathlib import Path

from contracts.errors import StateloopError
from contracts.model.suite import load_suite
from contracts.records.schema import schemas


def written(reference: str, application: str | None = None) -> dict[str, str]:
    """The files by their paths in the folder, of all applications or the named one. Raises DeclarationError."""
    applications = load_suite(reference).select(application)
    return {
        f"{f'{one.name}/' if len(applications) > 1 else ''}{name}.json": f"{_encoded(schema)}\n"
        for one in applications
        for name, schema in schemas(one).items()
    }


def _encoded(schema: object) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False)


def main(arguments: list[str]) -> int:
    """Write the files; 1, after one line with the reason, if that is not possible."""
    parser = argparse.ArgumentParser(prog="stateloop schemas", description=__doc__)
    parser.add_argument("suite", metavar="APPLICATION", help="an application or a suite, as package.module:name")
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("--application", metavar="NAME", help="one application of the suite (default: all of them)")
    parsed = parser.parse_args(arguments)
    try:
        files = written(parsed.suite, parsed.application)
    except StateloopError as error:
        print(error, file=sys.stderr)
        return 1
    for name, content in files.items():
        path = parsed.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    print(f"wrote {', '.join(files)} to {parsed.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
