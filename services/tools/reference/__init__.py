"""Writes the reference of declarations: `python -m services.tools.reference docs/reference/declarations.md`."""
