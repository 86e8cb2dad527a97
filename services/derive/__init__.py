"""Writes the states that are derived from the snapshots to their topics: `stateloop derive`."""
