"""All measures, at the size whose figures the documentation has, and at a small one to try them."""

from bench.alerts.changes import RuleChanges
from bench.alerts.latency import AlertStream
from bench.enrichment.api import Behaviour
from bench.enrichment.drain import Calls
from bench.harness.measure import Plan
from bench.query.service import Keys
from bench.windows.drain import WindowCounts
from bench.yardstick.drain import DrainMeasure
from bench.yardstick.latency import Stream

SLOW = Behaviour(slow_one_in=100)
FULL = Plan(
    (
        DrainMeasure("drain-100k", events=3_000_000, devices=100_000),
        DrainMeasure("drain-2m", events=3_000_000, devices=2_000_000),
        Stream("latency-1k", rate=1_000, seconds=600, warm_s=60),
        Stream("latency-10k", rate=10_000, seconds=300, warm_s=30),
        WindowCounts("windows", events=3_000_000, devices=10_000),
        AlertStream("alerts-1k", rate=1_000, seconds=120, warm_s=30),
        RuleChanges("rules-100k", keys=100_000, changes=20),
        Calls("worker-calls", 150_000),
        Calls("worker-idle", 1_500_000, answered=True),
        Calls("worker-slow", 150_000, SLOW),
        Keys("query-5m", keys=5_000_000, rate=10_000, seconds=20),
    )
)
QUICK = Plan(
    (
        DrainMeasure("drain-100k", events=200_000, devices=7_000),
        DrainMeasure("drain-2m", events=200_000, devices=140_000),
        Stream("latency-1k", rate=1_000, seconds=10, warm_s=5),
        Stream("latency-10k", rate=10_000, seconds=10, warm_s=10),
        WindowCounts("windows", events=300_000, devices=1_000),
        AlertStream("alerts-1k", rate=1_000, seconds=12, warm_s=10),
        RuleChanges("rules-100k", keys=10_000, changes=5),
        Calls("worker-calls", 30_000),
        Calls("worker-idle", 300_000, answered=True),
        Calls("worker-slow", 30_000, SLOW),
        Keys("query-5m", keys=250_000, rate=500, seconds=3),
    ),
    runs=1,
    batch_s=15,
)
