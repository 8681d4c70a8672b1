"""What to tell in a report of a fault: `python -m mimus.requests.help`."""

from __future__ import annotations

import json
import platform
import ssl
import sys
from types import ModuleType
from typing import Any

from mimus import __version__

from .compat import char_detection

try:
    import idna
except ImportError:
    idna: ModuleType | None = None  # type: ignore[no-redef]


def info() -> dict[str, Any]:
    """The versions of all that has a part in it."""
    detector = char_detection()
    return {
        "platform": {"system": platform.system(), "release": platform.release()},
        "implementation": {"name": platform.python_implementation(), "version": platform.python_version()},
        "system_ssl": {"version": f"{ssl.OPENSSL_VERSION_NUMBER:x}"},
        "requests": {"version": __version__},
        "idna": {"version": getattr(idna, "__version__", "")},
        "detector": {"name": getattr(detector, "__name__", ""), "version": getattr(detector, "__version__", "")},
    }


def main() -> None:
    """Prints it as JSON."""
    json.dump(info(), sys.stdout, sort_keys=True, indent=2)
    print()


if __name__ == "__main__":
    main()
