"""The enrichment worker: for each snapshot it makes the calls that are due, and sends the answers back as feedback."""
