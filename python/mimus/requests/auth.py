"""Credentials: Basic (RFC 7617), Digest (RFC 7616), and whatever else a callable puts into a request."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import warnings
from base64 import b64encode
from collections.abc import Callable
from typing import Any, ClassVar
from urllib.parse import urlsplit

from .cookies import extract_cookies_to_jar
from .utils import parse_dict_header

CONTENT_TYPE_FORM_URLENCODED = "application/x-www-form-urlencoded"
CONTENT_TYPE_MULTI_PART = "multipart/form-data"

_SCHEME = re.compile(r"digest ", re.IGNORECASE)
# RFC 7616 section 6.1, and SHA without a number, which some servers know.
_ALGORITHMS = {
    "MD5": hashlib.md5,
    "MD5-SESS": hashlib.md5,
    "SHA": hashlib.sha1,
    "SHA-256": hashlib.sha256,
    "SHA-256-SESS": hashlib.sha256,
    "SHA-512": hashlib.sha512,
    "SHA-512-SESS": hashlib.sha512,
}
# A request that is refused this often is not asked again.
_ATTEMPTS = 2


def _basic_auth_str(username: Any, password: Any) -> str:
    """What `Authorization` says for Basic. Text goes in ISO 8859-1, and bytes as they are."""
    return "Basic " + b64encode(_credential(username) + b":" + _credential(password)).decode("ascii")


def _credential(part: Any) -> bytes:
    if isinstance(part, bytes):
        return part
    if not isinstance(part, str):
        warnings.warn(f"credentials must be str or bytes, not {type(part).__name__}", DeprecationWarning, 4)
    return str(part).encode("latin1")


class AuthBase:
    """Something to give as `auth`: called with a `PreparedRequest`, it returns it with the credentials in."""

    def __call__(self, r: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __call__")


class HTTPBasicAuth(AuthBase):
    """A name and a password in `Authorization`."""

    _field = "Authorization"

    def __init__(self, username: Any, password: Any) -> None:
        self.username = username
        self.password = password

    def __eq__(self, other: object) -> bool:
        mine = self.username, self.password
        return mine == (getattr(other, "username", None), getattr(other, "password", None))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __call__(self, r: Any) -> Any:
        r.headers[self._field] = _basic_auth_str(self.username, self.password)
        return r


class HTTPProxyAuth(HTTPBasicAuth):
    """The same for a proxy, in `Proxy-Authorization`."""

    _field = "Proxy-Authorization"


class HTTPDigestAuth(AuthBase):
    """A name, and a proof that the password is known. Each thread has an exchange of its own."""

    def __init__(self, username: Any, password: Any) -> None:
        self.username = username
        self.password = password
        self._thread_local = threading.local()

    def init_per_thread_state(self) -> None:
        """Makes what one thread knows of its exchange, unless it is there."""
        state = self._thread_local
        if not hasattr(state, "init"):
            state.init = True
            state.last_nonce = ""
            state.nonce_count = 0
            state.chal = {}
            state.pos = None
            state.num_401_calls = None

    def build_digest_header(self, method: str, url: str) -> str | None:
        """The proof for a request, of the last challenge; `None` for one that cannot be met (RFC 7616 section 3.4)."""
        state = self._thread_local
        challenge = state.chal
        realm, nonce = challenge.get("realm"), challenge.get("nonce")
        algorithm = (challenge.get("algorithm") or "MD5").upper()
        make = _ALGORITHMS.get(algorithm)
        if realm is None or nonce is None or make is None:
            return None

        def digest(text: str) -> str:
            return make(text.encode()).hexdigest()

        target = urlsplit(url)
        uri = (target.path or "/") + (f"?{target.query}" if target.query else "")
        state.nonce_count = state.nonce_count + 1 if nonce == state.last_nonce else 1
        state.last_nonce = nonce
        cnonce, count = os.urandom(8).hex(), f"{state.nonce_count:08x}"
        secret = digest(f"{self.username}:{realm}:{self.password}")
        if algorithm.endswith("-SESS"):
            secret = digest(f"{secret}:{nonce}:{cnonce}")
        response = self._response(challenge.get("qop"), digest, secret, (nonce, count, cnonce), f"{method}:{uri}")
        if response is None:
            return None
        fields = {"username": self.username, "realm": realm, "nonce": nonce, "uri": uri, "response": response}
        fields |= {name: challenge[name] for name in ("opaque", "algorithm") if challenge.get(name)}
        said = [f'{name}="{value}"' for name, value in fields.items()]
        if challenge.get("qop"):
            said += ['qop="auth"', f"nc={count}", f'cnonce="{cnonce}"']
        return "Digest " + ", ".join(said)

    @staticmethod
    def _response(
        qop: str | None, digest: Callable[[str], str], secret: str, once: tuple[str, str, str], request: str
    ) -> str | None:
        nonce, count, cnonce = once
        if not qop:
            return digest(f"{secret}:{nonce}:{digest(request)}")
        # `auth-int` would need the body's digest, which a streamed one has not got yet.
        if "auth" not in (offered.strip() for offered in qop.split(",")):
            return None
        return digest(f"{secret}:{nonce}:{count}:{cnonce}:auth:{digest(request)}")

    def handle_redirect(self, r: Any, **kwargs: Any) -> None:
        """A hook: where a redirect leads, a challenge is a new one."""
        if r.is_redirect:
            self._thread_local.num_401_calls = 1

    def handle_401(self, r: Any, **kwargs: Any) -> Any:
        """A hook: sends the request again with the proof, where it was asked for."""
        state = self._thread_local
        # Only an error that is the client's is a question for credentials.
        if not 400 <= r.status_code < 500:
            state.num_401_calls = 1
            return r
        if state.pos is not None:
            r.request.body.seek(state.pos)
        challenge = r.headers.get("www-authenticate", "")
        if "digest" not in challenge.lower() or state.num_401_calls >= _ATTEMPTS:
            state.num_401_calls = 1
            return r
        state.num_401_calls += 1
        state.chal = parse_dict_header(_SCHEME.sub("", challenge, count=1))
        answer = self.build_digest_header(r.request.method, r.request.url)
        if answer is None:
            return r
        # Read to the end, so that the connection can be used again.
        _ = r.content
        r.close()
        again = r.request.copy()
        extract_cookies_to_jar(again._cookies, r.request, r.raw)
        again.prepare_cookies(again._cookies)
        again.headers["Authorization"] = answer
        second = r.connection.send(again, **kwargs)
        second.history.append(r)
        second.request = again
        return second

    def __call__(self, r: Any) -> Any:
        self.init_per_thread_state()
        state = self._thread_local
        if state.last_nonce and (answer := self.build_digest_header(r.method, r.url)):
            r.headers["Authorization"] = answer
        try:
            state.pos = r.body.tell()
        except AttributeError:
            state.pos = None
        r.register_hook("response", self.handle_401)
        r.register_hook("response", self.handle_redirect)
        state.num_401_calls = 1
        return r

    def __eq__(self, other: object) -> bool:
        mine = self.username, self.password
        return mine == (getattr(other, "username", None), getattr(other, "password", None))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        return {"username": self.username, "password": self.password}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
