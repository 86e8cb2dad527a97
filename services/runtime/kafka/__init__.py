"""The way to Kafka: producers, by the protocols of `interfaces`. `options` has the settings of all clients."""
