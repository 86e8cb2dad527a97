"""The command `stateloop`: one command for all parts, and a doctor that checks a set-up.

`command_table` lists the commands, `commands` has their arguments, and `services.runtime.command_line` is their frame.
"""
