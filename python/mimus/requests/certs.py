"""Where certificates of authorities are."""

from __future__ import annotations

import functools


@functools.cache
def where() -> str:
    """A file of authorities in PEM: certifi's, if it is installed, or the system's; empty where there is neither.

    It tells only. Without `verify=`, Mimus trusts what it trusts everywhere else.
    """
    try:
        from certifi import where as of_certifi
    except ImportError:
        import ssl

        return ssl.get_default_verify_paths().cafile or ""
    return of_certifi()


if __name__ == "__main__":
    print(where())
