"""What tests of calls share."""

from __future__ import annotations

import pytest

from services.enrichment.calls.lean import LeanTransport
from services.enrichment.calls.transport import AiohttpTransport
from tests.services.enrichment.calls import calling


@pytest.fixture(params=[AiohttpTransport, LeanTransport])
def each_transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with each transport in its turn."""
    monkeypatch.setattr(calling, "AiohttpTransport", request.param)
    if hasattr(request.module, "AiohttpTransport"):
        monkeypatch.setattr(request.module, "AiohttpTransport", request.param)
