"""The options of the JVMs of Spark that tests start: most of their short lives is compiling and loading."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests import everything
from tests.spark_app.running import CHECKOUT, Job, Topics

if TYPE_CHECKING:
    from pathlib import Path

ARCHIVE = CHECKOUT / ".stateloop" / "test-classes.jsa"
"""The parsed classes of a job. A JVM whose jars or version are others ignores it."""
VARIABLE = "SPARK_SUBMIT_OPTS"
COMPILE_FAST = "-XX:TieredStopAtLevel=1"
"""No second compiler: what it saves comes after minutes."""


def start_fast() -> None:
    """Let all Spark drivers that this process starts from now on compile fast, and map the archive if there is one."""
    os.environ[VARIABLE] = f"{COMPILE_FAST} -XX:SharedArchiveFile={ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off"


def make_archive(kafka: str, folder: Path) -> None:
    """Make the archive from the classes of a job that ends after some batches."""
    made = folder / ARCHIVE.name
    environment = {
        "STATELOOP_HTTP_PORT": "0",
        "STATELOOP_CLASS_ARCHIVE": str(made),
        VARIABLE: COMPILE_FAST,
    }
    Topics(kafka, everything.application())
    job = Job(kafka, folder, "tests.everything:app", environment).start()
    job.batches(2)
    assert job.stop() == 0
    made.replace(ARCHIVE)
