"""The way to Kafka. `options` has the settings that all clients share."""
