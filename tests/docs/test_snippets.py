"""Code that a page shows is a file that runs."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("README.md", "examples/scooters/application.py"),
        ("docs/tutorials/count-by-the-hour.md", "examples/departures/application.py"),
        ("docs/tutorials/count-by-the-hour.md", "examples/departures/event.py"),
        ("docs/tutorials/count-by-the-hour.md", "examples/departures/state.py"),
        ("docs/how-to/enrichments.md", "tests/examples/scooters/test_ride.py"),
        ("docs/how-to/query-states.md", "tests/docs/wait_for_landing.py"),
        ("docs/how-to/windows.md", "tests/docs/page_views.py"),
        ("docs/how-to/history.md", "tests/docs/replay_events.py"),
        ("docs/how-to/topics.md", "tests/docs/gateway.py"),
        ("docs/how-to/topics.md", "tests/docs/rides.py"),
        ("docs/how-to/write-a-reducer.md", "tests/spark_app/geometric_mean.py"),
        ("docs/how-to/write-a-reducer.md", "tests/spark_app/test_geometric_mean.py"),
        ("docs/how-to/webhooks.md", "tests/docs/signed_webhook.py"),
        ("docs/how-to/write-a-processor.md", "tests/docs/temperature_jumps.py"),
        ("docs/how-to/write-a-processor.md", "tests/docs/test_temperature_jumps.py"),
    ],
)
def test_the_page_shows_this_very_file(page: str, file: str) -> None:
    source = (ROOT / file).read_text(encoding="utf-8").strip()
    assert f"```python\n{source}\n```" in (ROOT / page).read_text(encoding="utf-8")
