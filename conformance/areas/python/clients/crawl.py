"""Crawls some pages of a server of its own with Scrapy and Mimus's handler, and prints what was found as JSON."""

import gzip
import http.server
import json
import socketserver
import threading

import scrapy
from scrapy.crawler import CrawlerProcess

CONCURRENCY = 4
PAGES = 20
PEERS = set()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        PEERS.add(self.client_address)
        super().setup()

    def say(self, body, status=200, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/":
            links = "".join(f'<a href="/page/{n}">{n}</a>' for n in range(PAGES))
            self.say(f"<html><title>root</title>{links}</html>".encode(), Content_Type="text/html; charset=utf-8")
        elif self.path.startswith("/page/"):
            number = self.path.rpartition("/")[2]
            body = f"<html><title>Seite {number}: Größe</title></html>".encode("iso-8859-1")
            headers = {"Content_Type": "text/html; charset=iso-8859-1"}
            if int(number) % 2:
                body, headers["Content_Encoding"] = gzip.compress(body), "gzip"
            self.say(body, **headers)
        elif self.path == "/moved":
            self.say(b"", 302, Location="/cookie", Set_Cookie="crumb=1")
        elif self.path == "/cookie":
            self.say(self.headers.get("Cookie", "none").encode(), Content_Type="text/plain")
        elif self.path == "/agent":
            self.say(self.headers["User-Agent"].encode(), Content_Type="text/plain")
        elif self.path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"short")
            self.close_connection = True
        else:
            self.say(b"nothing here", 404, Content_Type="text/plain")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.say(b"got " + body, Content_Type="text/plain")

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def expected():
    pages = {f"/page/{n}": f"Seite {n}: Größe" for n in range(PAGES)}
    return pages | {
        "/": "root",
        "/cookie": "crumb=1",
        "/agent": "mockingbird",
        "/form": "got a=1&b=%C3%B6",
        "/absent": "404 nothing here",
        "/short": "dataloss",
        "refused": "DownloadConnectionRefusedError",
    }


class Spider(scrapy.Spider):
    name = "spider"

    def __init__(self, base, found, **options):
        super().__init__(**options)
        self.base, self.found = base, found

    async def start(self):
        yield scrapy.Request(f"{self.base}/", self.root)
        for path in ("/moved", "/agent", "/absent"):
            yield scrapy.Request(self.base + path, self.plain, meta={"handle_httpstatus_list": [404]})
        yield scrapy.FormRequest(f"{self.base}/form", formdata={"a": "1", "b": "ö"}, callback=self.plain)
        lossy = {"download_fail_on_dataloss": False}
        yield scrapy.Request(f"{self.base}/short", self.short, meta=lossy)
        # Nobody listens on the port of discarding.
        yield scrapy.Request("http://127.0.0.1:9/", self.plain, errback=self.refused, meta={"dont_retry": True})

    def path(self, response):
        return response.url.removeprefix(self.base)

    def root(self, response):
        self.found["/"] = response.css("title::text").get()
        yield from response.follow_all(css="a", callback=self.page)

    def page(self, response):
        if response.protocol != "HTTP/1.1" or str(response.ip_address) != "127.0.0.1":
            raise AssertionError(f"{response.protocol} from {response.ip_address}")
        self.found[self.path(response)] = response.css("title::text").get()

    def plain(self, response):
        said = response.text if response.status == 200 else f"{response.status} {response.text}"
        self.found[self.path(response)] = said

    def short(self, response):
        self.found["/short"] = ",".join(response.flags)

    def refused(self, failure):
        self.found["refused"] = failure.type.__name__


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    handler = "mimus.scrapy.DownloadHandler"
    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": CONCURRENCY,
            "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
            "DOWNLOAD_DELAY": 0,
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            "USER_AGENT": "mockingbird",
        }
    )
    found = {}
    process.crawl(Spider, base=f"http://127.0.0.1:{server.server_port}", found=found)
    process.start()
    told = {"expected": expected(), "found": found, "connections": len(PEERS), "concurrency": CONCURRENCY}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
