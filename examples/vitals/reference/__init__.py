"""The API that the example's enrichment calls."""
