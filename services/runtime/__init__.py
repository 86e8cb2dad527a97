"""What all services share: the owners of topics, Kafka clients, the endpoints of a process, and its shutdown."""
