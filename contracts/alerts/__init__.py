"""The pure part of alerts: rules are evaluated and tested, and the deliveries of a webhook planned."""
