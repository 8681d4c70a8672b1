"""A download handler by which Scrapy downloads with Mimus. In the settings of a project:

    DOWNLOAD_HANDLERS = {
        "http": "mimus.scrapy.DownloadHandler",
        "https": "mimus.scrapy.DownloadHandler",
    }
    MIMUS_PROFILE = "chrome"

`MIMUS_PROFILE` and `MIMUS_HTTP_VERSION` are as `profile` and `http_version` of `mimus.AsyncClient`, and None by
default; `MIMUS_ARGUMENTS` is a mapping of further arguments for it. A request's `meta["mimus"]` is a mapping of
further arguments of its call.
"""

import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

try:
    from scrapy import exceptions
    from scrapy.core.downloader.handlers._base_streaming import BaseStreamingDownloadHandler
    from scrapy.http import Headers
except ModuleNotFoundError as _missing:
    if _missing.name is None or _missing.name.partition(".")[0] != "scrapy":
        raise
    message = "mimus.scrapy needs Scrapy 2.19 or later: pip install 'mimus[scrapy]'"
    raise ImportError(message) from None

import mimus
from mimus import _errors as errors

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.core.downloader.handlers._base_streaming import _BaseResponseArgs
    from scrapy.crawler import Crawler

__all__ = ["DownloadHandler"]

# The first class that an error is of decides.
_EXCEPTIONS = (
    (errors.RequestTimeout, exceptions.DownloadTimeoutError),
    (errors.InvalidURL, exceptions.UnsupportedURLSchemeError),
    (errors.ResolveError, exceptions.CannotResolveHostError),
    (errors.TlsError, exceptions.DownloadFailedError),
    (errors.ConnectError, exceptions.DownloadConnectionRefusedError),
    (errors.Error, exceptions.DownloadFailedError),
)


class DownloadHandler(BaseStreamingDownloadHandler[mimus.AsyncResponse]):
    """Downloads over http and https, on the asyncio reactor that is Scrapy's default."""

    lazy = True

    def __init__(self, crawler: "Crawler") -> None:
        super().__init__(crawler)
        settings = crawler.settings
        arguments = {
            "http_version": settings.get("MIMUS_HTTP_VERSION"),
            "limits": mimus.Limits(max_connections=self._pool_size_total or None),
            "local_address": self._get_bind_address_host(),
            "profile": settings.get("MIMUS_PROFILE"),
            "verify": settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"),
        }
        self._client = mimus.AsyncClient(
            # All of this is done by middlewares.
            cookies=False,
            decode=False,
            default_headers=False,
            follow_redirects=False,
            trust_env=False,
            **{name: value for name, value in arguments.items() if value is not None},
            **settings.getdict("MIMUS_ARGUMENTS"),
        )

    @asynccontextmanager
    async def _make_request(self, request: "Request", timeout: float) -> AsyncIterator[mimus.AsyncResponse]:
        options: dict[str, Any] = {"headers": self._fields(request), "stream": True, "timeout": float(timeout)}
        if request.body:
            options["content"] = request.body
        proxy = self._extract_proxy_url_with_creds(request)
        if proxy:
            options["proxy"] = proxy
        options.update(request.meta.get("mimus", ()))
        try:
            answer = await self._client.request(request.method, request.url, **options)
            try:
                yield answer
            finally:
                await answer.aclose()
        except errors.Error as error:
            raise _translated(error) from error

    def _fields(self, request: "Request") -> list[tuple[bytes, bytes]]:
        return [(name, value) for name, values in self._request_headers(request).items() for value in values]

    @staticmethod
    def _extract_headers(response: mimus.AsyncResponse) -> Headers:
        return Headers(response.headers.raw)

    @staticmethod
    def _build_base_response_args(
        response: mimus.AsyncResponse, request: "Request", headers: Headers
    ) -> "_BaseResponseArgs":
        tls, address = response.tls, response.remote_addr
        return {
            "status": response.status,
            "url": request.url,
            "headers": headers,
            "certificate": None if tls is None else tls.certificate,
            "ip_address": None if address is None else ipaddress.ip_address(address[0]),
            "protocol": response.http_version,
        }

    @staticmethod
    def _iter_body_chunks(response: mimus.AsyncResponse) -> AsyncIterator[bytes]:
        return response.aiter_bytes()

    @staticmethod
    def _is_dataloss_exception(exc: Exception) -> bool:
        return isinstance(exc, errors.ConnectionLost) and exc.phase == "body"

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()


def _translated(error: errors.Error) -> Exception:
    for kind, exception in _EXCEPTIONS:
        if isinstance(error, kind):
            return exception(str(error))
    return error
