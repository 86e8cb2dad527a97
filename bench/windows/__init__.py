"""Counts of each key in each hour, by Stateloop, Flink and Kafka Streams: how fast, and for how much CPU."""
