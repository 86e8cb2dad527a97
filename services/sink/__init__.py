"""Writes named states to an external store, Redis or PostgreSQL: `stateloop sink`."""
