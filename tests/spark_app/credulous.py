"""The job with its check of the time taken out: `python -m tests.spark_app.credulous`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from spark_app import lift, main

if TYPE_CHECKING:
    from pyspark.sql import Column

    from contracts import Application


def believed(application: Application, ahead: str) -> Column:  # noqa: ARG001  # as the function that it stands for
    """The verdict as it was before the times were looked at."""
    return F.col("reason")


if __name__ == "__main__":
    lift._with_time = believed  # noqa: SLF001  # there is no other way to take it out
    sys.exit(main.main())
