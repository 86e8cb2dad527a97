"""The shortest Spark job that does what the yardstick asks."""
