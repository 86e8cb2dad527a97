"""One folder per deployable. Services import contracts, and nothing else of the project."""
