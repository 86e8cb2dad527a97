"""A real Kafka broker (KRaft, one process) for one machine."""
