"""Writes a new project from the files in `template`: real files, in which only the name `myproject` is replaced."""
