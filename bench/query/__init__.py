"""The query service under load, compared with a Redis that is fed from the same topic."""
