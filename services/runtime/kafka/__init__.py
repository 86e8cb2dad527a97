"""The way to Kafka: members of groups, producers, readers of topics, and administration.

`interfaces` and `assignment_interfaces` have the protocols that the parts use. The other modules implement them with
confluent-kafka; `options` has the settings that all clients share.
"""
