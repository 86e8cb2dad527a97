"""References to objects in modules: `package.module:name`, in settings and arguments."""

import importlib
from types import ModuleType

from contracts.errors import DeclarationError


def named_object(reference: str) -> object:
    """Return the object that `package.module:name` names. Raises DeclarationError when there is none."""
    module, _, name = reference.partition(":")
    names = vars(_module(reference, module))
    name = name or "app"
    if name not in names:
        raise DeclarationError(repr(reference), f"{module} has no {name!r}", "Write package.module:name")
    return names[name]


def _module(reference: str, module: str) -> ModuleType:
    """The module, imported. What it fails to import itself is an error of its own code."""
    if not all(part.isidentifier() for part in module.split(".")):
        raise DeclarationError(repr(reference), f"{module!r} is no module's name", "Write package.module:name")
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        write = "Write package.module:name, of the working directory or of an installed package"
        raise DeclarationError(repr(reference), str(error), write) from error
