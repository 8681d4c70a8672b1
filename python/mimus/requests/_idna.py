"""Host names in any script as ASCII: IDNA 2008 (RFC 5891), with the usual mapping to lower case before it."""

from __future__ import annotations

from unicodedata import category, combining, name, normalize

# RFC 5892 section 2.1: what words are written with.
_LETTERS_AND_DIGITS = frozenset({"Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"})
# RFC 5892 section 2.6: allowed and disallowed whatever their properties say.
_ALLOWED = frozenset("\u00df\u03c2\u06fd\u06fe\u0f0b\u3007")
_DISALLOWED = frozenset("\u0640\u07fa\u302e\u302f\u3031\u3032\u3033\u3034\u3035\u303b")
# Sections 2.4 and 2.9: blocks of marks for symbols and for music, and the parts of old Hangul.
_BLOCKS = ((0x1100, 0x11FF), (0x20D0, 0x20FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF), (0x1D100, 0x1D24F))
_ARABIC_DIGITS, _EXTENDED_ARABIC_DIGITS = range(0x660, 0x66A), range(0x6F0, 0x6FA)
_VIRAMA = 9
_PREFIX = "xn--"
_LABEL = 63
_HOST = 253


def to_ascii(host: str) -> str:
    """`host` with each label that is not ASCII in Punycode. Raises `ValueError` where that is not a name."""
    # UTS 46 section 4: mapped before it is split, as full stops of East Asia part labels too.
    mapped = normalize("NFC", normalize("NFKC", host).lower()).replace("\u3002", ".")
    labels = mapped.split(".")
    final = labels.pop() if len(labels) > 1 and not labels[-1] else None
    encoded = ".".join(map(_label, labels)) + ("." if final is not None else "")
    if len(encoded) > _HOST:
        raise ValueError(f"a host of {len(encoded)} characters")
    return encoded


def _label(label: str) -> str:
    if not label:
        raise ValueError("an empty label")
    if not label.isascii():
        _check(label)
        label = _PREFIX + label.encode("punycode").decode("ascii")
    if len(label) > _LABEL:
        raise ValueError(f"a label of {len(label)} characters")
    return label


def _check(label: str) -> None:
    """RFC 5891 section 4.2."""
    if label[0] == "-" or label[-1] == "-" or label[2:4] == "--":
        raise ValueError(f"hyphens in {label!r}")
    if category(label[0])[0] == "M":
        raise ValueError(f"{label!r} begins with a combining mark")
    for at, char in enumerate(label):
        if not (_valid(char) or _valid_here(char, at, label)):
            raise ValueError(f"U+{ord(char):04X} in {label!r}")
    points = {ord(char) for char in label}
    if points.intersection(_ARABIC_DIGITS) and points.intersection(_EXTENDED_ARABIC_DIGITS):
        raise ValueError(f"{label!r} mixes digits")


def _valid(char: str) -> bool:
    """RFC 5892 section 3: whether it may be anywhere in a label."""
    if char in _ALLOWED or char == "-":
        return True
    if char in _DISALLOWED or any(low <= ord(char) <= high for low, high in _BLOCKS):
        return False
    stable = normalize("NFKC", normalize("NFKC", char).casefold()) == char
    return stable and category(char) in _LETTERS_AND_DIGITS


def _valid_here(char: str, at: int, label: str) -> bool:
    """RFC 5892 appendix A: what is allowed in some company only."""
    before, after = label[at - 1 : at] if at else "", label[at + 1 : at + 2]
    match char:
        case "\u200c" | "\u200d":
            return bool(before) and combining(before) == _VIRAMA
        case "\u00b7":
            return before == "l" == after
        case "\u0375":
            return _script(after, "GREEK")
        case "\u05f3" | "\u05f4":
            return _script(before, "HEBREW")
        case "\u30fb":
            return any(_script(each, "HIRAGANA", "KATAKANA", "CJK UNIFIED") for each in label if each != char)
    return False


def _script(char: str, *scripts: str) -> bool:
    return bool(char) and name(char, "").startswith(scripts)
