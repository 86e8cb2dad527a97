"""Writes a small file whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, content: bytes, new: Path) -> None:
    """Have this content under that path, on disk when it returns; it is written to `new` first. Raises OSError."""
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # without it the machine may come up with the file as it was before
    finally:
        os.close(folder)
