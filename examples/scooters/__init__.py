"""The smallest application: one file."""
