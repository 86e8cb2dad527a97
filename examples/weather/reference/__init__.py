"""A receiver of the alerts of the example."""
