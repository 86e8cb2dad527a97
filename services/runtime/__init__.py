"""What all services share: Kafka clients, readers and publishers of records, endpoints, shutdown, owners of topics."""
