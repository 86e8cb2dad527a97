from pathlib import Path

from services.tools.cli.settings_reference import page

DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "settings.md"


def test_the_committed_page_is_that_of_the_settings() -> None:
    stale = "stale: run `python -m services.tools.cli.settings_reference docs/reference/settings.md`"
    assert DOCUMENT.read_text(encoding="utf-8") == page(), stale


def test_a_setting_has_default_and_meaning() -> None:
    rows = page().splitlines()
    assert (
        "| `STATELOOP_DRAIN` | 2 s | The time for which a revoked partition waits for its running requests. |" in rows
    )
    assert "| `STATELOOP_COMMIT_EVERY` | 200 ms |" in page()
    assert any(row.startswith("| `STATELOOP_SINK_URL` | required |") for row in rows)
    assert "| `STATELOOP_INSTANCE` | see the meaning |" in page(), "the machine's name would differ on another machine"
