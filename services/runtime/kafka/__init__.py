"""The way to Kafka: members of groups, producers, readers of topics, and administration.

`interfaces` has the protocols that the parts use, and the values that they pass. The other modules implement them with
confluent-kafka; `options` has the settings that all clients share.
"""
