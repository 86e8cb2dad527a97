"""Modules that take long to import, and that few tests need: imported where they are first used."""

from __future__ import annotations

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from typing import Any


def lazy(name: str) -> Any:
    """Return the module, which is imported when one of its names is first read."""
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    assert spec is not None, name
    assert spec.loader is not None, name
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
