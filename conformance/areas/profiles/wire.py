"""Frames of HTTP/2 and heads of HTTP/1.1, for comparing."""

from __future__ import annotations

from itertools import zip_longest

from harness.checks import Failed, brief

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, SETTINGS, WINDOW_UPDATE, ACK, PRIORITY = 1, 4, 8, 1, 0x20
KINDS = {
    0: "DATA", 1: "HEADERS", 2: "PRIORITY", 3: "RST_STREAM", 4: "SETTINGS", 6: "PING", 7: "GOAWAY",
    8: "WINDOW_UPDATE", 9: "CONTINUATION",
}  # fmt: skip


def frames(data: bytes) -> list[bytes]:
    """Whole frames (RFC 9113 section 4.1), but for acknowledgements of SETTINGS, whose place the server decides."""
    if not data.startswith(PREFACE):
        raise Failed(f"not HTTP/2's preface: {brief(data[:24])}")
    rest, found = data[len(PREFACE) :], []
    while len(rest) >= 9:
        end = 9 + int.from_bytes(rest[:3])
        if not (rest[3] == SETTINGS and rest[4] & ACK):
            found.append(rest[:end])
        rest = rest[end:]
    return found


def first_flight(all_of_them: list[bytes]) -> list[bytes]:
    """To the first request, and the window of its stream, if that follows."""
    at = next((at for at, frame in enumerate(all_of_them) if frame[3] == HEADERS), None)
    if at is None:
        raise Failed("no request came")
    end = at + 1
    if end < len(all_of_them) and all_of_them[end][3] == WINDOW_UPDATE and all_of_them[end][5:9] == all_of_them[at][5:9]:
        end += 1
    return all_of_them[:end]


def settings_were_known(data: bytes) -> bool:
    """Whether the server's SETTINGS were acknowledged before the first request."""
    rest = data[len(PREFACE) :]
    while len(rest) >= 9 and rest[3] != HEADERS:
        if rest[3] == SETTINGS and rest[4] & ACK:
            return True
        rest = rest[9 + int.from_bytes(rest[:3]) :]
    return False


def without_size_updates(frame: bytes) -> bytes:
    """HEADERS with priority, without what says a size of the compression's table (RFC 7541 section 6.3)."""
    if frame[3] != HEADERS or not frame[4] & PRIORITY:
        return frame
    block = frame[14:]
    while block and block[0] & 0xE0 == 0x20:
        # An integer with a prefix of five bits (RFC 7541 section 5.1).
        end = 1
        if block[0] & 0x1F == 0x1F:
            while block[end] & 0x80:
                end += 1
            end += 1
        block = block[end:]
    return (len(block) + 5).to_bytes(3) + frame[3:14] + block


def opening(settings: list[tuple[int, int]], increment: int) -> list[bytes]:
    """SETTINGS, and a WINDOW_UPDATE of the connection (RFC 9113 sections 6.5 and 6.9)."""
    payload = b"".join(number.to_bytes(2) + value.to_bytes(4) for number, value in settings)
    first = len(payload).to_bytes(3) + bytes([SETTINGS, 0]) + bytes(4) + payload
    return [first, (4).to_bytes(3) + bytes([WINDOW_UPDATE, 0]) + bytes(4) + increment.to_bytes(4)]


def title(frame: bytes) -> str:
    return f"{KINDS.get(frame[3], frame[3])} flags {frame[4]:#x} stream {int.from_bytes(frame[5:9])}"


def difference(our: bytes, their: bytes) -> str:
    """What is to be known of two frames that differ."""
    if title(our) != title(their):
        return f"{title(our)} instead of {title(their)}"
    ours, theirs = our[9:], their[9:]
    at = next((at for at, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    end = at + 24
    return f"{title(our)}, from byte {at} on: {ours[at:end].hex()}.. instead of {theirs[at:end].hex()}.."


def expect_frames(ours: list[bytes], theirs: list[bytes]) -> None:
    for at, (our, their) in enumerate(zip(ours, theirs)):
        if our != their:
            raise Failed(f"frame {at}: {difference(our, their)}")
    if len(ours) != len(theirs):
        raise Failed(f"{len(ours)} frames instead of {len(theirs)}")


def head(data: bytes) -> list[str]:
    """The lines of an HTTP/1.1 head."""
    text, found, _ = data.partition(b"\r\n\r\n")
    if not found:
        raise Failed(f"no whole head: {brief(data)}")
    return text.decode("latin-1").split("\r\n")


def keyless(lines: list[str]) -> list[str]:
    """With `Sec-WebSocket-Key` by its length."""
    name = "sec-websocket-key: "
    return [f"{line[: len(name)]}{len(line)}" if line.lower().startswith(name) else line for line in lines]


def differences(ours: list[str], theirs: list[str]) -> list[str]:
    """Each line that is another, or is there once only."""
    pairs = zip_longest(ours, theirs)
    return [f"{our!r} instead of {their!r}" for our, their in pairs if our != their]


def expect_lines(ours: list[str], theirs: list[str]) -> None:
    differing = differences(ours, theirs)
    if differing:
        raise Failed("; ".join(differing))
