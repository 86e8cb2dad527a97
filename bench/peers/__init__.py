"""The same job as experts of other engines write it, in Java."""
