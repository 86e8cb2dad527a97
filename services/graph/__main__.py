"""Print the graph of the enrichments of each application, or write that of one as a picture."""

import argparse
import sys
from pathlib import Path

from contracts.errors import DeclarationError, StateloopError
from contracts.model.suite import load_suite
from services.graph.picture import picture
from services.graph.text import text


def main(arguments: list[str]) -> int:
    """Print or write; 1, after one line with the reason, if that is not possible."""
    parser = argparse.ArgumentParser(prog="stateloop graph", description=__doc__)
    parser.add_argument("suite", metavar="APPLICATION", help="an application or a suite, as package.module:name")
    parser.add_argument("--application", metavar="NAME", help="one application of the suite (default: all of them)")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="write a picture there")
    parsed = parser.parse_args(arguments)
    try:
        applications = load_suite(parsed.suite).select(parsed.application)
        if parsed.svg is not None and len(applications) > 1:
            known = ", ".join(one.name for one in applications)
            raise DeclarationError(parsed.suite, "has several applications", f"Write --application with one of {known}")
    except StateloopError as error:
        print(error, file=sys.stderr)
        return 1
    if parsed.svg is None:
        titled = len(applications) > 1
        print("\n\n".join(f"{one.name}\n\n{text(one)}" if titled else text(one) for one in applications))
        return 0
    try:
        parsed.svg.write_text(picture(applications[0]), encoding="utf-8")
    except OSError as error:
        print(f"{parsed.svg} cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    print(f"wrote {parsed.svg}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
