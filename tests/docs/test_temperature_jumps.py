"""The processor of docs/how-to/write-a-processor.md, in the tester that PySpark brings."""

from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from tests.docs.temperature_jumps import HOUR_MS, Jumps


def test_a_jump_is_counted_and_silence_is_reported() -> None:
    tester = TwsTester(Jumps(), timeMode="ProcessingTime")
    tester.setProcessingTime(1)
    rows = tester.test("sensor-1", [Row(temperature=20.0), Row(temperature=24.0), Row(temperature=30.0)])
    assert rows[-1] == Row(temperature=30.0, jumps=1, is_silent=False)
    assert tester.setProcessingTime(1 + HOUR_MS) == [Row(temperature=30.0, jumps=1, is_silent=True)]
