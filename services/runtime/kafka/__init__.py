"""The way to Kafka: producers and readers, by the protocols of `interfaces`. `options` has what all clients share."""
