"""The job with its checks of keys and times taken out: `python -m tests.spark_app.unchecked`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from spark_app import checks, main

if TYPE_CHECKING:
    from pyspark.sql import Column

    from spark_app.checks import Case


def believed(cases: list[Case]) -> Column:  # noqa: ARG001  # as what it stands for
    """The verdict as it was before keys and times are compared."""
    return F.col("reason")


if __name__ == "__main__":
    checks.checked = believed
    sys.exit(main.main())
