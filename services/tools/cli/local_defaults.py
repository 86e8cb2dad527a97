"""The settings of the loop that `stateloop up` runs here, for what the environment does not set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.settings import read
from services.tools.launcher.folders import Folders
from services.tools.launcher.process_specs import api_addresses, job
from services.tools.launcher.settings import LauncherSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_SHARED = ("STATELOOP_HTTP_PORT", "SPARK_LOCAL_DIRS")
"""The variables of one process."""
JOINED = ("STATELOOP_APIS", "STATELOOP_ALLOWED_NETWORKS")
"""The variables to which the launcher adds its own."""


def local_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the launcher's processes that differ from this environment; none for another set-up.

    They apply without STATELOOP_APPLICATION, and in a data folder in which the launcher has run its own broker. Raises
    InvalidSettingsError.
    """
    settings = read(LauncherSettings)
    folders = Folders(settings.data)
    if "STATELOOP_APPLICATION" in environment and ("STATELOOP_KAFKA" in environment or not folders.run.exists()):
        return {}
    variables = {**job(settings, folders).env, **api_addresses(settings)}
    return {
        name: value
        for name, value in variables.items()
        if name not in NOT_SHARED and (name in JOINED or name not in environment)
    }
