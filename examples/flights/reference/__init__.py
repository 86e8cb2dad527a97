"""The APIs that the enrichments call, served from the tables."""
