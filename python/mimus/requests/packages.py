"""`requests.packages`: urllib3, idna and a detector of encodings, where they are installed.

None is needed. They are found below this name, as in requests, once this module is imported.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from types import ModuleType
from typing import Any

from .compat import char_detection

# What is found below has been imported from elsewhere.
__path__: list[str] = []


def _alias(name: str, module: ModuleType) -> None:
    globals()[name] = module
    for full, loaded in list(sys.modules.items()):
        if full == module.__name__ or full.startswith(f"{module.__name__}."):
            sys.modules[f"{__name__}.{name}{full[len(module.__name__) :]}"] = loaded


for _name in ("urllib3", "idna"):
    with contextlib.suppress(ImportError):
        _alias(_name, importlib.import_module(_name))
if (_detector := char_detection()) is not None:
    _alias("chardet", _detector)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"{name} is not installed, and not needed")
