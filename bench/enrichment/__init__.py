"""Compares the enrichment worker with its peers: snapshots in, calls, answers out, offsets committed."""
