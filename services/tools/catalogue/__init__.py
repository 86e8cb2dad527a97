"""Writes the catalogue of metrics: `python -m services.tools.catalogue docs/reference/observability.md`."""
