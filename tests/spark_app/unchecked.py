"""The job with its checks of keys and times taken out: `python -m tests.spark_app.unchecked`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from spark_app import lift, main

if TYPE_CHECKING:
    from pyspark.sql import Column

    from contracts import Application


def believed(application: Application, key_name: str, key: str, times: tuple[str, ...]) -> Column:  # noqa: ARG001  # as what it stands for
    """The verdict as it was before keys and times are compared."""
    return F.col("reason")


if __name__ == "__main__":
    lift._checked = believed  # noqa: SLF001  # there is no other way to take it out
    sys.exit(main.main())
