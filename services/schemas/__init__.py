"""Writes an application's JSON Schemas: `stateloop schemas package.module:app folder`."""
