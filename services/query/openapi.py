"""The OpenAPI document of the service: `python -m services.query.openapi docs/reference/openapi.json` writes it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from contracts.api import ENDPOINTS
from services.query.http.openapi import document_of


def document() -> dict[str, Any]:
    """The complete document."""
    return document_of(ENDPOINTS)


def written() -> str:
    """The text of the document in the repository."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(written(), encoding="utf-8")
