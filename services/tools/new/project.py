"""Writes a project from the template."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from services.tools.new.errors import FolderInUseError, InvalidNameError, TemplateMissingError, UnwritableError

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPLATE = Path(__file__).with_name("template")
PLACEHOLDER = "myproject"
"""The name of the package in the template."""
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""The names that Python, Docker and Kafka all accept."""
RESERVED = {"tests", "stateloop", "contracts", "services", "spark_app"}
"""The folder of the tests, and the packages of Stateloop."""
COMPILED = "__pycache__"
"""The folder of compiled modules, which an installation adds."""


def write_project(name: str, parent: Path) -> tuple[Path, ...]:
    """Write the project of this name into a folder of this name. Return its files, relative to the folder.

    Raises InvalidNameError, FolderInUseError, TemplateMissingError, UnwritableError.
    """
    check_name(name)
    folder = parent / name
    sources = tuple(template_files())
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FolderInUseError(folder)
        return tuple(_write(source, name, folder) for source in sources)
    except OSError as error:
        raise UnwritableError(folder, error.strerror or str(error)) from error


def check_name(name: str) -> None:
    """Raise InvalidNameError unless the name can be that of a new package."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise InvalidNameError(name, "write a Python package of lower-case letters, digits and single underscores")
    if name in RESERVED or name in sys.stdlib_module_names or _is_installed(name):
        raise InvalidNameError(name, "a package of this name exists already: write another")


def template_files() -> Iterator[Path]:
    """Yield the paths of the files, relative to the template. Raises TemplateMissingError."""
    found = sorted(_files(TEMPLATE))
    if not found:
        raise TemplateMissingError(TEMPLATE)
    yield from found


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder; of a checkout, also those that a link leads to."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and path.name != COMPILED:
            yield from _files(path)
        elif path.is_file():
            yield path.relative_to(TEMPLATE)


def _write(source: Path, name: str, folder: Path) -> Path:
    target = Path(*(part.replace(PLACEHOLDER, name) for part in source.parts))
    text = (TEMPLATE / source).read_text(encoding="utf-8")
    (folder / target).parent.mkdir(parents=True, exist_ok=True)
    (folder / target).write_text(text.replace(PLACEHOLDER, name), encoding="utf-8")
    return target


def _is_installed(name: str) -> bool:
    """Return whether this Python finds a package of this name, other than a mere folder."""
    spec = find_spec(name)
    return spec is not None and spec.origin is not None
