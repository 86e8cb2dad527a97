"""Decisions of an enrichment worker: which requests a snapshot calls for, as pure functions."""
