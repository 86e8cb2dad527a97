"""The live view: the loop at work, in the terminal."""
