"""Cookies between the client's own jar and `http.cookiejar`, by way of the lines of a `cookies.txt`."""

from collections.abc import Iterable
from http.cookiejar import Cookie, CookieJar

_HTTP_ONLY = "#HttpOnly_"


def to_text(jar: Iterable[Cookie]) -> str:
    """The cookies of `jar`, as lines of a `cookies.txt`."""
    return "".join(line for cookie in jar if (line := _line(cookie)) is not None)


def _line(cookie: Cookie) -> str | None:
    # What requests keeps without a domain belongs to nobody whom it could be sent to.
    if not cookie.domain or cookie.value is None:
        return None
    subdomains = bool(cookie.domain_initial_dot or cookie.domain.startswith("."))
    # A host without a dot in it is kept by http.cookiejar under a name of its own.
    domain = cookie.domain.removesuffix(".local") if not cookie.domain_specified else cookie.domain
    http_only = any(name.lower() == "httponly" for name in cookie._rest)  # type: ignore[attr-defined]
    fields = (
        (_HTTP_ONLY if http_only else "") + domain,
        "TRUE" if subdomains else "FALSE",
        cookie.path or "/",
        "TRUE" if cookie.secure else "FALSE",
        # 0 is the end of the session.
        str(max(1, int(cookie.expires))) if cookie.expires is not None else "0",
        cookie.name,
        cookie.value,
    )
    if any(sign in field for field in fields for sign in "\t\r\n"):
        return None
    return "\t".join(fields) + "\n"


def from_text(text: str, jar: CookieJar | None = None) -> CookieJar:
    """Adds the cookies of a `cookies.txt` to `jar`, or to a new one; returns it."""
    if jar is None:
        jar = CookieJar()
    for line in text.splitlines():
        http_only = line.startswith(_HTTP_ONLY)
        line = line.removeprefix(_HTTP_ONLY)
        if not line.strip() or line.startswith("#"):
            continue
        domain, subdomains, path, secure, expires, name, value = line.split("\t")
        # http.cookiejar looks for a host without a dot under a name of its own.
        if subdomains == "FALSE" and "." not in domain and ":" not in domain:
            domain += ".local"
        jar.set_cookie(
            Cookie(
                version=0,
                name=name,
                value=value,
                port=None,
                port_specified=False,
                domain=domain,
                domain_specified=subdomains == "TRUE",
                domain_initial_dot=domain.startswith("."),
                path=path,
                path_specified=True,
                secure=secure == "TRUE",
                expires=int(expires) or None,
                discard=expires == "0",
                comment=None,
                comment_url=None,
                # As the module itself has it of a field without a value.
                rest={"HttpOnly": None} if http_only else {},  # type: ignore[dict-item]
            )
        )
    return jar
