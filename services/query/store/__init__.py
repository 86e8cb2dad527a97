"""The entries of a state in LMDB: one environment per named state, one database per bucket of time."""
