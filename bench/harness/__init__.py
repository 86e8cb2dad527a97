"""Measures jobs that do the same work, and checks every result."""
