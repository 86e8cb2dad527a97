"""The list of all variables, compared with the settings models, the files of the deployments and the documents."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from contracts.errors import InvalidSettingsError
from contracts.settings import KafkaSettings, read
from contracts.settings.variables import KNOWN, PREFIX, unknown_variables

ROOT = Path(__file__).parents[3]
PARTS = ("contracts", "spark_app", "services", "examples", "bench")
NOT_OF_MODELS = {"STATELOOP_SOURCE", "STATELOOP_VERSION", "STATELOOP_WHEEL"}
LINKS = ("STATELOOP_QUERY_SERVICE_HOST", "STATELOOP_QUERY_SERVICE_PORT_HTTP", "STATELOOP_QUERY_PORT_8080_TCP_ADDR")
"""Variables that Kubernetes sets in each pod for the service `stateloop-query`."""


def models() -> set[type[BaseSettings]]:
    """All settings models of the parts."""
    sources = [path for part in PARTS for path in (ROOT / part).rglob("*.py") if "template" not in path.parts]
    paths = [path for path in sources if "Settings)" in path.read_text()]
    modules = [import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)) for path in paths]
    types = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    return {model for model in types if issubclass(model, BaseSettings) and model is not BaseSettings}


def variables(model: type[BaseSettings]) -> set[str]:
    return {f"{model.model_config.get('env_prefix', '')}{name}".upper() for name in model.model_fields}


def test_the_list_has_the_variables_of_all_settings_models() -> None:
    declared = {name for model in models() for name in variables(model) if name.startswith(PREFIX)}
    assert len(models()) > 10
    wanted = declared | NOT_OF_MODELS
    assert wanted == KNOWN, f"correct contracts/settings/variables.py: add {wanted - KNOWN}, remove {KNOWN - wanted}"


def shown() -> set[str]:
    """The variables of the tables on the page of settings."""
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `(STATELOOP_\w+)` \|", page, re.MULTILINE))


def test_the_page_of_settings_shows_all_variables_but_those_of_examples() -> None:
    assert {name for name in KNOWN - shown() if "_REFERENCE_" not in name} == NOT_OF_MODELS


def test_every_variable_of_deployments_and_documents_is_known() -> None:
    files = [ROOT / "README.md", ROOT / "Makefile", ROOT / "Dockerfile", ROOT / ".env", *ROOT.glob("compose*.yaml")]
    files += [*(ROOT / "docs").rglob("*.md"), *(path for path in (ROOT / "deploy").rglob("*") if path.is_file())]
    named = re.compile(rf"{PREFIX}[A-Z0-9_]*[A-Z0-9]\b(?!_?…)")
    used = {name: path.name for path in files for name in named.findall(path.read_text(errors="ignore"))}
    assert "STATELOOP_KAFKA" in used
    assert {name: path for name, path in used.items() if name not in KNOWN} == {}


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("STATELOOP_PARTITONS", "write STATELOOP_PARTITIONS"),
        ("STATELOOP_APLICATION", "write STATELOOP_APPLICATION"),
        ("stateloop_kafak", "write STATELOOP_KAFKA"),
        ("STATELOOP_QUERY_SERVICE_PORT", "no part"),
        ("STATELOOP_XYZZY_QQ", "unset it"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_nearest(name: str, advice: str) -> None:
    ((variable, problem),) = unknown_variables(["PATH", "STATELOOP_KAFKA", name])
    assert variable == name
    assert advice in problem


def test_service_links_of_kubernetes_are_no_settings() -> None:
    assert unknown_variables(LINKS) == []


def test_a_model_is_read_only_from_variables_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_VERSION", "0.2.0")
    monkeypatch.setenv("STATELOOP_IN_FLIGHT", "of another part")
    read(KafkaSettings)
    monkeypatch.setenv("STATELOOP_KAFKA_OPTION", "hunter2")
    with pytest.raises(
        InvalidSettingsError, match=r"STATELOOP_KAFKA_OPTION: .* write STATELOOP_KAFKA_OPTIONS"
    ) as error:
        read(KafkaSettings)
    assert "hunter2" not in str(error.value)
