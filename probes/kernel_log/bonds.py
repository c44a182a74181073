"""Messages of bonds count only if the interfaces of this machine do not contradict them.

A user can create a bond of any name in a network namespace, and the kernel logs its messages as those of the machine
(user_namespaces(7); Linux drivers/net/bonding/bond_main.c).
"""

from __future__ import annotations

import re

from ...models.facts.machine import Event
from ..host.host import Host, Unreadable, exists

_INTERFACES = "sys/class/net"
_BOND = re.compile(r"(?:bond|team)\w{0,12}(?=: )")
_HAS_LINK = {
    "bond-slave-up": True,
    "bond-slave-up-old": True,
    "bond-slave-down": False,
    "bond-slave-down-old": False,
    "bond-no-active": False,
}


def is_contradicted(event: Event, host: Host) -> bool:
    """Whether the event names an interface that this machine does not have, or whose link is in the other state."""
    if not (event.name or "").startswith("bond-") or not exists(host, _INTERFACES):
        return False
    bond = _BOND.search(event.text or "")
    name = event.subject if event.subject != "node" else bond[0] if bond else ""
    interface = f"{_INTERFACES}/{name}"
    if not exists(host, interface):
        return True
    has_link = _HAS_LINK.get(event.name or "")
    return has_link is not None and has_link != _link_of(interface, host)


def _link_of(interface: str, host: Host) -> bool:
    """Whether the interface has a link. The kernel refuses to read it while the interface is off."""
    try:
        return (host.read(f"{interface}/carrier") or "").strip() == "1"
    except Unreadable:
        return False
