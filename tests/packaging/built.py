"""The wheel, built as `python -m build` builds it: a source distribution of the checkout, and the wheel of that."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("contracts", "services", "spark_app", "stateloop")
SOURCES = ("LICENSE", "README.md", "pyproject.toml", *PACKAGES, "deploy", "tests")
"""What the build may read, and the tests, which no wheel has."""


def build_wheel(folder: Path) -> Path:
    """Return the wheel, built in a copy of the checkout in this folder."""
    checkout, unpacked = folder / "checkout", folder / "unpacked"
    for name in SOURCES:
        copy(ROOT / name, checkout / name)
    with tarfile.open(folder / hook("build_sdist", checkout, folder)) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return folder / hook("build_wheel", source, folder)


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder with its links."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def hook(name: str, source: Path, target: Path) -> str:
    """Run a hook of the build backend in a source folder, and return the name of the file that it wrote."""
    code = f"from setuptools.build_meta import {name}; print({name}({str(target)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]
