"""Writes an application's JSON Schemas: `python -m services.schemas package.module:app folder`."""
