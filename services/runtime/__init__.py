"""What all services share: Kafka clients, a source and publisher of records, endpoints, shutdown, owners of topics."""
