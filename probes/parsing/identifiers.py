"""Identifiers of a machine or its owner in a text, and the stand-ins that replace them.

The shapes, and the reserved ranges of the stand-ins, which make stand-ins recognizable:

    hardware address  aa:bb:cc:dd:ee:ff, enxaabbccddeeff   02:00:00:...: locally administered (IEEE 802)
    GUID              b8ce:f603:0012:3456                  0200:00ff:fe...: an EUI-64 made of such an address
    GID, IPv6         fe80:0000:...:3456, 2001:db8::1      a GUID behind 2001:db8::/32 (RFC 3849) or fe80::
    IPv4              10.1.2.3                             198.18.0.0/15: for benchmarks (RFC 2544)
    UUID              with hyphens, colons (md) or bare    00000000-0000-4000-8000-...
    number of a GPU   unique_id 12345678901234567890 (kfd) 9000000000000...
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import count

_H = "[0-9A-Fa-f]"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_EVERY = "|".join(
    (
        rf"(?P<uuid>{_H}{{8}}-{_H}{{4}}-{_H}{{4}}-{_H}{{4}}-{_H}{{12}})",
        rf"(?<![0-9A-Za-z])(?P<eights>{_H}{{8}}(?::{_H}{{8}}){{3}}|[0-9a-f]{{32}})(?![0-9A-Za-z])",
        rf"(?<![0-9A-Za-z])(?P<pairs>{_H}{{2}}(?::{_H}{{2}}){{5,}})(?![0-9A-Za-z])",
        rf"(?<![0-9A-Za-z-])(?P<hyphens>{_H}{{2}}(?:-{_H}{{2}}){{5}})(?![0-9A-Za-z-])",
        rf"(?<![0-9A-Za-z])(?P<fours>{_H}{{4}}(?::{_H}{{4}}){{3,}})(?![0-9A-Za-z])",
        rf"(?<![0-9A-Za-z])(?<!{_H}:)(?P<ipv6>{_H}{{0,4}}(?::{_H}{{0,4}}){{2,8}})(?![0-9A-Za-z]|\.[0-9])",
        rf"(?<![0-9A-Za-z.])(?P<ipv4>(?:{_OCTET}\.){{3}}{_OCTET})(?![0-9A-Za-z]|\.[0-9])",
        # systemd.net-naming-scheme(7): interfaces named after their hardware address
        r"(?<![0-9A-Za-z])(?:en|ib|sl|wl|ww)x(?P<named>[0-9a-f]{12})(?![0-9A-Za-z])",
        rf"(?i:naa\.|eui\.|wwn-0x)(?P<wwn>{_H}{{16}}(?:{_H}{{16}})?)(?![0-9A-Za-z])",
        r"(?i:serial ?number[:=] ?)(?P<serial>[0-9A-Za-z][0-9A-Za-z._-]{3,})",
        r"(?<![0-9A-Za-z_])(?:unique_id|hive_id) (?P<unique>[1-9][0-9]{5,19})(?![0-9A-Za-z])",
        r"(?<![0-9A-Za-z])pid=[0-9]{1,10}, name=(?P<program>[^,<]{1,64})",  # program of a job, in an Xid line
        r"(?<=/home/)(?P<user>[^/\s\"'\\,;:=)\]]+)",
    )
)
# The number of a stand-in is no identifier: "some-word-1::" has no address.
_AFTER = "".join(f"(?<!some-{kind}-)" for kind in ("node", "server", "export", "user", "program", "word"))
_SHAPES = f"{_AFTER}(?:{_EVERY})"
_VERSION = re.compile(r"(?i)(?:version|firmware|fw|bios|driver|rev)\W{0,3}$")

# Format of the stand-in with a number, by kind of original.
_FORMS: Mapping[str, Callable[[int, str], str]] = {
    "mac": lambda number, _: f"020000{number:06x}",
    "guid": lambda number, _: f"020000fffe{number:06x}",
    "prefix": lambda number, _: f"20010db8{number:08x}",
    "uuid": lambda number, _: f"00000000000040008000{number:012x}",
    "ipv4": lambda number, _: str(ipaddress.IPv4Address("198.18.0.0") + number),
    "serial": lambda number, original: f"SERIAL{number:0{max(4, len(original) - 6)}}",
    "unique": lambda number, _: f"9{number:018}",
    "node": lambda number, _: f"some-node-{number}",
    "server": lambda number, _: f"some-server-{number}",
    "export": lambda number, _: f"some-export-{number}",
    "user": lambda number, _: f"some-user-{number}",
    "program": lambda number, _: f"some-program-{number}",
    "word": lambda number, _: f"some-word-{number}",
}
_STAND_INS = {
    "mac": re.compile("020000.*"),
    "guid": re.compile("020000fffe.*"),
    "prefix": re.compile("20010db8.*"),
    "uuid": re.compile("0{12}40008000.*"),
    "ipv4": re.compile(r"198\.1[89]\..*"),
    "serial": re.compile("SERIAL[0-9]{4,}"),
    "unique": re.compile("90{12}[0-9]{6}"),
    "node": re.compile("some-node-[0-9]+"),
    "server": re.compile("some-server-[0-9]+"),
    "export": re.compile("some-export-[0-9]+"),
    "user": re.compile("some-user-[0-9]+"),
    "program": re.compile("some-program-[0-9]+"),
    "word": re.compile("some-word-[0-9]+"),
}

_BETWEEN_SERVERS = re.compile(r"(\[[^\[\]]*\]|[,:@/])")
_NO_SERVER = re.compile(r"\[.*\]|(?:tcp|o2ib|gni|kfi)[0-9]*")


class Identities:
    """Replaces identifiers in texts. `names` are additional identifying words and phrases, with their kinds.

    While `learning` is set, texts are returned unchanged and existing identifiers are noted, so that no new stand-in
    equals an existing one.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        known = "|".join(map(_literal, sorted(names, key=len, reverse=True)))
        self._pattern = re.compile(f"(?P<name>{known})|{_SHAPES}" if names else _SHAPES)
        self._existing: dict[str, set[str]] = defaultdict(set)
        self._numbers: dict[str, count[int]] = defaultdict(lambda: count(1))
        self._assigned: dict[tuple[str, str], str] = {}
        self.learning = False

    def scrubbed(self, text: str, version: bool = False) -> str:
        """Return the text with stand-ins. In a `version`, four numbers are not an address."""

        def replace(match: re.Match[str]) -> str:
            shape = str(match.lastgroup)
            if shape == "ipv4" and (version or _VERSION.search(text, max(0, match.start() - 12), match.start())):
                return match[0]
            before = match[0][: match.start(shape) - match.start()]
            return before + self._stand_in(shape, match[shape])

        return self._pattern.sub(replace, text)

    def of(self, kind: str, original: str) -> str:
        """Return the stand-in of an original; always the same one for the same original."""
        if self.learning:
            self._existing[kind].add(original)
        if self.learning or _STAND_INS[kind].fullmatch(original):
            return original
        if (kind, original) not in self._assigned:
            forms = (_FORMS[kind](number, original) for number in self._numbers[kind])
            self._assigned[kind, original] = next(form for form in forms if form not in self._existing[kind])
        return self._assigned[kind, original]

    def device(self, text: str) -> str:
        """Scrub the device of a network file system: "server:/export", "//server/share"."""
        head, slash, export = _parts(text)
        known = {word: self.of("server", word) for word in servers(text)}
        words = re.split(_BETWEEN_SERVERS, head)
        changed = "".join(known.get(word) or self.scrubbed(word) for word in words)
        return f"{changed}{slash}{self.of('export', export) if export else ''}"

    def _stand_in(self, shape: str, text: str) -> str:
        if shape == "name":
            kind = self._names[text]
            original = text.partition(".")[0] if kind == "node" else text
            return self.device(text) if kind == "device" else self.of(kind, original)
        if shape in ("serial", "unique", "user", "program"):
            return self.of(shape, text)
        if shape == "ipv4":
            return self._ipv4(text)
        if shape == "ipv6":
            return self._ipv6(text)
        digits = re.sub("[:-]", "", text).lower()
        new = iter(self._digits(shape, digits))
        changed = "".join(next(new) if letter not in ":-" else letter for letter in text)
        return text if changed == text.lower() else changed

    def _digits(self, shape: str, digits: str) -> str:
        """Replace hexadecimal digits without separators. In longer runs the identifying part is at the end."""
        if shape in ("uuid", "eights", "wwn") and len(digits) == 32:
            return self._hex("uuid", digits)
        if shape in ("pairs", "fours") and len(digits) == 32:
            return self._address(digits)
        kind, size = ("mac", 12) if len(digits) < 16 else ("guid", 16)
        return digits[:-size] + self._hex(kind, digits[-size:])

    def _hex(self, kind: str, digits: str) -> str:
        """Replace an identifier. All zeros or all ones (unset, broadcast) and the link-local prefix remain."""
        universal = re.fullmatch("(?:00|ff)*|fe80000000000000", digits)
        return digits if universal else self.of(kind, digits)

    def _address(self, digits: str) -> str:
        """Replace the 32 digits of an IPv6 address or GID: a prefix and a GUID, or zeros and an IPv4 address."""
        address = ipaddress.IPv6Address(int(digits, 16))
        if address.is_loopback or address.is_multicast:
            return digits
        if address.ipv4_mapped:
            return f"{digits[:24]}{int(ipaddress.IPv4Address(self._ipv4(str(address.ipv4_mapped)))):08x}"
        return self._hex("prefix", digits[:16]) + self._hex("guid", digits[16:])

    def _ipv4(self, text: str) -> str:
        """Replace an IPv4 address. This host, loopback, masks and multicast addresses remain."""
        first = int(text.partition(".")[0])
        return text if first in (0, 127) or first >= 224 else self.of("ipv4", text)

    def _ipv6(self, text: str) -> str:
        """Replace a compressed IPv6 address. A colon before or after it may be punctuation."""
        for start, end in ((0, None), (0, -1), (1, None), (1, -1)):
            try:
                digits = ipaddress.IPv6Address(text[start:end]).exploded.replace(":", "")
            except ValueError:
                continue
            new = self._address(digits)
            whole = str(ipaddress.IPv6Address(int(new, 16)))
            return text if new == digits else text[:start] + whole + (text[end:] if end else "")
        return text


def _literal(name: str) -> str:
    """Return the pattern of a name. It matches whole words; a long name with letters and digits also parts of words."""
    strong = len(name) >= 8 and re.search("[A-Za-z]", name) and re.search("[0-9]", name)
    return re.escape(name) if strong else rf"(?<![0-9A-Za-z]){re.escape(name)}(?![0-9A-Za-z])"


def has_shape(text: str) -> bool:
    """Whether the text is a stand-in other than a serial number, or contains an identifier with a known shape."""
    stand_in = any(pattern.fullmatch(text) for kind, pattern in _STAND_INS.items() if kind != "serial")
    return stand_in or bool(re.search(_SHAPES, text))


def servers(device: str) -> list[str]:
    """Return the server names in a network device, without addresses and Lustre's networks ("@o2ib")."""
    words = re.split(_BETWEEN_SERVERS, _parts(device)[0])
    return [word for word in words if re.search("[A-Za-z]", word) and not _NO_SERVER.fullmatch(word)]


def _parts(device: str) -> tuple[str, str, str]:
    if device.startswith("//"):
        head, slash, export = device[2:].partition("/")
        return f"//{head}", slash, export
    return device.partition(":/")
