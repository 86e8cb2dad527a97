"""The arguments of the commands: a file for each command, or for several that share theirs.

A file imports nothing heavy at its top: `stateloop COMMAND --help` and the shell's completion import it. The code that
it runs is imported when it runs. A new command is a file here, and a line in `services/tools/cli/command_table.py`.
"""
