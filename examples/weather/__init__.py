"""The weather of three airports in New York, with an alert for each change of temperature that a rule names."""
