"""Measures the enrichment worker beside its peers: snapshots in, calls, answers out, offsets committed."""
