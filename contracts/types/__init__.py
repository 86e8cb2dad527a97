"""Types of fields: the Spark SQL type of each Python type, and what a value must meet beyond its type."""
