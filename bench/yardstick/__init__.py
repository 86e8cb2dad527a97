"""The yardstick's job, declared as an application."""
