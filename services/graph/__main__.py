"""Print the graph of an application's enrichments, or write it as a picture."""

import argparse
import sys
from pathlib import Path

from contracts.errors import StateloopError
from contracts.model.application import load
from services.graph.picture import picture
from services.graph.text import text


def main(arguments: list[str]) -> int:
    """Print or write; 1, after one line with the reason, if that is not possible."""
    parser = argparse.ArgumentParser(prog="stateloop graph", description=__doc__)
    parser.add_argument("application", help="package.module:name")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="write a picture there")
    parsed = parser.parse_args(arguments)
    try:
        application = load(parsed.application)
    except StateloopError as error:
        print(error, file=sys.stderr)
        return 1
    if parsed.svg is None:
        print(text(application))
        return 0
    try:
        parsed.svg.write_text(picture(application), encoding="utf-8")
    except OSError as error:
        print(f"{parsed.svg} cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    print(f"wrote {parsed.svg}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
