"""Write the JSON Schema of each topic of an application into a folder."""

import json
import sys
from pathlib import Path

from contracts.errors import StateloopError
from contracts.model.application import load
from contracts.records.schema import schemas

USAGE = "usage: stateloop schemas package.module:app folder"


def written(reference: str) -> dict[str, str]:
    """The files, by name. Raises DeclarationError."""
    return {
        f"{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas(load(reference)).items()
    }


def main(arguments: list[str]) -> int:
    """Write the files; 1, after one line with the reason, if that is not possible."""
    if len(arguments) != len(("application", "folder")):
        print(USAGE, file=sys.stderr)
        return 1
    try:
        files = written(arguments[0])
    except StateloopError as error:
        print(error, file=sys.stderr)
        return 1
    folder = Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    print(f"wrote {', '.join(files)} to {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
