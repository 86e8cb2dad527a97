"""Answers queries on named states: `python -m services.query`."""
