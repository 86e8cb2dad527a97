"""The shared code of the services: Kafka clients, readers, publishers, endpoints, shutdown, owners of topics."""
