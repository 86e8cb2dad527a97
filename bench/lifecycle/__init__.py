"""A savepoint, a changed state, another parallelism and the way back, by Stateloop and by Flink, on the same events."""
