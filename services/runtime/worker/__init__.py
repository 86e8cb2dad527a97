"""The loop of every worker: a member of a consumer group that passes the records of its partitions to a handler."""
