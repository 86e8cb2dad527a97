"""What all services share: Kafka clients, a source and a publisher of records, endpoints, shutdown, owners of topics."""
