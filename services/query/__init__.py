"""Answers queries on named states: `stateloop query`."""
