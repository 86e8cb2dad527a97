"""The declarations of an application, which are checked when they are created."""
