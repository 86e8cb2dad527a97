from services.tools.graph.text import text
from tests.services.tools.graph.drawn import app

DECLARATIONS = """\
cars: 4 enrichments in 3 steps

step 1
├─ place  ← lat  (city → Found)
│           lat rounded to 0.001
│           at most every 30 s
└─ fit    ← at, [fit]  (fits → Found)
            at rounded to 1 h
            up to 5 rounds

step 2
└─ rule   ← place, speed  (city → Found)
            when moving
            stale after 90 min

step 3
└─ fine   ← speed, rule, [fit]  (court → Found)
            when speed > rule.value

city: 5 s a call, up to 12 attempts
fits: 5 s a call, up to 12 attempts
court: 5 s a call, up to 12 attempts
budget: at most 20 requests per device in 1 h"""


def test_the_text_has_all_that_is_declared() -> None:
    lines = text(app).splitlines()
    policies = ("city:", "fits:", "court:")
    assert sorted(lines) == sorted(DECLARATIONS.splitlines())
    assert [line for line in lines if not line.startswith(policies)] == [
        line for line in DECLARATIONS.splitlines() if not line.startswith(policies)
    ]
