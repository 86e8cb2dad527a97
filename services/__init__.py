"""The services and commands, one folder each. They import contracts, and nothing else of the project."""
