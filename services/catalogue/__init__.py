"""Writes the catalogue of metrics into a document: `python -m services.catalogue docs/reference/observability.md`."""
