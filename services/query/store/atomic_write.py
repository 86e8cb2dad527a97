"""Writes a small file as a whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, content: bytes, new: Path) -> None:
    """Replace the file's content, which is on disk when this returns; `new` is its temporary file. Raises OSError."""
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # or the machine may start with the file as it was before
    finally:
        os.close(folder)
