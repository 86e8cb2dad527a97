"""Compares the state of the same keys in the checkpoint, on the topic of snapshots and in the query service.

The three are read in this order while the job may run. Each is written from the one before it or before it is
committed, so a later one is at least as new. Of one version, all have the same content.
"""
