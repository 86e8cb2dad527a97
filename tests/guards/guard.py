"""The list of guards: lines of the product, each with the fault it is for and the tests that fail without it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


@dataclass(frozen=True)
class Guard:
    """A line of code, or a few, that a fault makes necessary."""

    name: str
    """The part of the product, and what the guard does: `contracts/stale-answers-are-replaced`."""
    fault: str
    """What goes wrong without it."""
    file: str
    text: str
    """The text of the guard, which the file has once."""
    without: str
    """What replaces it when it is taken out."""
    tests: tuple[str, ...]
    """The tests, as pytest names them, of which at least one fails without it."""

    @property
    def part(self) -> str:
        """The part of the product."""
        return self.name.partition("/")[0]

    def taken_out(self, source: str) -> str:
        """Return the source of its file without the guard. Raises ValueError where the text is not there once."""
        if (count := source.count(self.text)) != 1:
            raise ValueError(f"{self.name}: {self.file} has its text {count} times")
        return source.replace(self.text, self.without)


def guards() -> list[Guard]:
    """Return all guards, in the order of the lists of this folder."""
    return [
        Guard(name=f"{path.stem}/{name}", tests=tuple(fields.pop("tests")), **fields)
        for path in sorted(FOLDER.glob("*.toml"))
        for name, fields in tomllib.loads(path.read_text()).items()
    ]
