"""pycurl: libcurl by hand, one handle that is used again."""

from io import BytesIO

import pycurl

from kit import Client, Config, Peer, Setup


class Handle(Peer):
    def __init__(self, setup: Setup) -> None:
        self.curl = pycurl.Curl()
        version = pycurl.CURL_HTTP_VERSION_2TLS if setup.http2 else pycurl.CURL_HTTP_VERSION_1_1
        self.curl.setopt(pycurl.HTTP_VERSION, version)
        if setup.ca:
            self.curl.setopt(pycurl.CAINFO, setup.ca)

    def get(self, url):
        body = BytesIO()
        curl = self.curl
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.HTTPGET, True)
        curl.setopt(pycurl.WRITEDATA, body)
        curl.perform()
        return curl.getinfo(pycurl.RESPONSE_CODE), body.getvalue()

    def post(self, url, body):
        answer = BytesIO()
        curl = self.curl
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.POST, True)
        curl.setopt(pycurl.POSTFIELDS, body)
        curl.setopt(pycurl.WRITEDATA, answer)
        curl.perform()
        return curl.getinfo(pycurl.RESPONSE_CODE), answer.getvalue()

    def stream(self, url, seen):
        curl = self.curl
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.HTTPGET, True)
        curl.setopt(pycurl.WRITEFUNCTION, seen)
        curl.perform()
        return curl.getinfo(pycurl.RESPONSE_CODE)

    def close(self):
        self.curl.close()


CLIENT = Client(
    distribution="pycurl",
    module="pycurl",
    configs={"sync": Config("a Curl handle that is used again", Handle)},
)
