"""The values of secrets, which a file may have."""

from pathlib import Path

FILE = "file:"
"""The beginning of a value that names the file of the secret."""


def read_secret(configured: str) -> str:
    """Return a configured secret; `file:/path` is the content of that file. Raises OSError, UnicodeDecodeError."""
    if configured.startswith(FILE):
        return read_secret_file(Path(configured.removeprefix(FILE)))
    return configured


def read_secret_file(path: Path) -> str:
    """Return the content of a file, without white space around it. Raises OSError, UnicodeDecodeError."""
    return path.read_text(encoding="utf-8").strip()
