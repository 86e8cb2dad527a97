from __future__ import annotations

import errno
import json
import os

from spark_app.run.report import JobReport


def test_a_line_that_cannot_be_written_is_left_out() -> None:
    lines, is_full = list[str](), True

    def write(text: str) -> None:
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        lines.append(text)

    report = JobReport(write)
    report.ended("the disk is full")
    is_full = False
    report.ended("it has space")
    assert [json.loads(line)["why"] for line in lines] == ["it has space"]
