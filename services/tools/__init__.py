"""The commands, and the tools that they run."""
