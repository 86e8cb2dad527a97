from pathlib import Path

import pytest

from services.tools.cli.__main__ import main
from services.tools.cli.commands.schemas import written

CHECKOUT = Path(__file__).parents[3]
COMMITTED = {"examples.flights.application:app": "examples/flights/schemas"}


@pytest.mark.parametrize(("reference", "folder"), COMMITTED.items())
def test_the_committed_schemas_are_those_of_the_models(reference: str, folder: str) -> None:
    committed = {
        str(path.relative_to(CHECKOUT / folder)): path.read_text("utf-8")
        for path in (CHECKOUT / folder).rglob("*.json")
    }
    assert committed == written(reference), f"stale: run `stateloop schemas {reference} {folder}`"


def test_the_error_has_a_correct_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schemas", "no.such.module:app", str(tmp_path)]) == 1
    assert "Write package.module:name" in capsys.readouterr().err
    assert main(["schemas"]) == 2


def test_the_applications_of_a_suite_have_a_folder_each(tmp_path: Path) -> None:
    suite = "examples.departures.application:suite"
    assert main(["schemas", suite, str(tmp_path)]) == 0
    assert {path.parent.name for path in tmp_path.rglob("snapshot.json")} == {"flights", "departures", "carriers"}
    assert main(["schemas", suite, str(tmp_path / "one"), "--application", "departures"]) == 0
    assert (tmp_path / "one" / "snapshot.json").exists()


def test_tables_alerts_and_derived_states_have_a_schema_each() -> None:
    names = {name for name in written("examples.weather.application:app") if name.startswith("states/")}
    assert names == {"states/temperature_changes.json", "states/temperature_rules.json"}
    assert "LastFlight" in written("examples.flights.application:app")["states/aircraft.json"]
