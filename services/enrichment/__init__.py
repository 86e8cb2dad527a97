"""The enrichment worker.

It reads snapshots, plans the requests of each, calls the APIs within their limits, and writes the answers as feedback.
`worker` is the main path; `partition_state` has the state of one partition, `dispatcher` starts requests, `calls` makes
them, and `service` builds and runs a worker.
"""
