"""Event streams that are left at their last word, where calls block: their connections serve again, or do no harm."""

import queue
import socket
import threading

import pytest

import mimus

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
# The last word comes in two pieces.
WORDS = HEAD + b'e\r\ndata: "word"\n\n\r\n9\r\ndata: [DO\r\n5\r\nNE]\n\n\r\n'
END = b"0\r\n\r\n"


class Server:
    """GET /chat streams up to its last word, and sends what it is told then; all else says which connection serves it."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.to_say = queue.Queue()
        self.said = queue.Queue()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        number = 0
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            # What is sent is there at once, as every server of streams has it.
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.talk, args=(peer, number), daemon=True).start()
            number += 1

    def talk(self, peer, number):
        with peer, peer.makefile("rb") as lines:
            while line := lines.readline():
                while lines.readline() not in (b"\r\n", b""):
                    pass
                if not line.startswith(b"GET /chat"):
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % number)
                    continue
                peer.sendall(WORDS)
                what = self.to_say.get()
                try:
                    peer.sendall(what)
                except OSError:
                    # The client has closed already.
                    return
                finally:
                    self.said.put(None)

    def say(self, what):
        """Goes on behind the last word; returns when that is sent."""
        self.to_say.put(what)
        self.said.get(timeout=60)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.to_say.put(b"")
    server.listener.close()


def leave_at_the_last_word(client, server):
    """As the SDKs do it: what follows the last word is not asked for."""
    heard = b""
    with client.stream("GET", f"{server.base}/chat") as response:
        for piece in response.iter_bytes():
            heard += piece
            if heard.endswith(b"[DONE]\n\n"):
                return


def number_of(client, server):
    return client.get(f"{server.base}/next").text


def test_the_end_that_is_due_is_read_off_by_the_next_call(server):
    with mimus.Client() as client:
        for _ in range(5):
            leave_at_the_last_word(client, server)
            server.say(END)
            assert number_of(client, server) == "0"


def test_who_owes_the_end_delays_nobody(server):
    with mimus.Client() as client:
        leave_at_the_last_word(client, server)
        # Nothing more comes on that connection.
        assert [number_of(client, server) for _ in range(2)] == ["1", "1"]


@pytest.mark.parametrize(
    "instead",
    [
        END + b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n9",
        b"10000\r\n" + b"x" * 0x10000 + b"\r\n2\r\nxx\r\n" + END,
        b"5\r\ndata:\r\n",
        b"no chunk at all\r\n",
    ],
    ids=["answer", "flood", "more", "damage"],
)
def test_what_comes_in_place_of_the_end_is_nobodys_answer(server, instead):
    with mimus.Client() as client:
        leave_at_the_last_word(client, server)
        server.say(instead)
        assert [number_of(client, server) for _ in range(2)] == ["1", "1"]
