"""`stateloop completion`."""

from typing import Literal


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the script with which a shell completes commands and options.

    For bash: stateloop completion bash > ~/.local/share/bash-completion/completions/stateloop
    """
    from services.tools.cli.app import create_app

    print(create_app().generate_completion(shell=shell))
