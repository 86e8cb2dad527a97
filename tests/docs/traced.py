"""Records which files of the product run."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ROOT = Path(__file__).parents[2]
SERVICES = ("alerts", "derive", "enrichment", "query", "runtime")
PRODUCT = tuple(
    f"{ROOT / folder}/" for folder in ("contracts", "spark_app", *(f"services/{name}" for name in SERVICES))
)


class Trace:
    """The files whose functions run, in this thread and in those that start while it is installed."""

    def __init__(self) -> None:
        self._is_recording = False
        self._run: set[str] = set()

    @property
    def files(self) -> set[str]:
        """Their paths in the repository."""
        return {path.removeprefix(f"{ROOT}/") for path in self._run.copy() if path.startswith(PRODUCT)}

    def take(self) -> set[str]:
        """Return the files, and begin anew."""
        found = self.files
        self._run.clear()
        return found

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Observe the functions of this thread, and of threads that start in this block."""
        threading.setprofile(self._observe)
        sys.setprofile(self._observe)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what runs in this block."""
        self._is_recording = True
        try:
            yield
        finally:
            self._is_recording = False

    def _observe(self, frame: FrameType, event: str, _: Any) -> None:
        if self._is_recording and event == "call" and frame.f_code.co_name != "<module>":
            self._run.add(frame.f_code.co_filename)
