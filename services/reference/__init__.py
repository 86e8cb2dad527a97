"""Writes the reference of declarations from the code: `python -m services.reference docs/reference/declarations.md`."""
