"""The shared code of the services: Kafka clients, the loop of workers, endpoints, shutdown, owners of topics."""
