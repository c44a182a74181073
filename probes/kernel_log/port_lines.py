"""The forms of kernel log lines that say that a port went down or came up, of Linux and of BSD systems.

The rows are part of FORMS (forms.py). Sources: Linux drivers/infiniband/core/cache.c, mlx5_core (en_main.c), mlx4_en,
bnxt, ice, igb, e1000e, tg3, qede, sfc, r8169, atlantic, hinic, gve, ionic and alx below drivers/net/ethernet, and
drivers/net/phy/phy.c; FreeBSD sys/net/if.c (do_link_state_change); NetBSD sys/net/if.c
(if_link_state_change).
"""

from __future__ import annotations

ADDRESS = r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_NAME = r"(?P<name>\S{1,40})"
_PORT = (
    r"(?P<name>(?=[a-z]{1,9}[0-9])(?:en|eth|em|wan|lan|ib|hsn|mgmt|vmnic|p[0-9]{1,3}p)[a-z0-9]{1,14}(?:\.[0-9]{1,4})?)"
)
# A network device behind its driver: "e1000e: eth0 ", "tg3 0000:03:00.0: eth0: ", "eth0: ".
_NET = (
    rf"(?:{ADDRESS}:? |(?<![\w.-])(?:[a-z][a-z0-9_]{{1,14}}: )?)"
    rf"{_PORT}:? (?:\([^()]{{1,40}}\) ){{0,4}}"  # a switch in the machine: "eth3 (phyId: 15) Link DOWN"
    r"(?:\w{2,10}: )?(?:NIC |Netdev is |Device |HINIC_MSG_LINK_STATUS: )?(?:Copper |Fib(?:er|re) |S[Ee]r[Dd]es )?"
    r"[Ll]ink (?:is )?"
)
# A network device of BSD systems has the name of its driver. Bridges, tunnels, VLANs and aggregates have no cable.
_BSD = (
    r"(?<![\w.-])(?P<name>(?:igb|igc|ix|ixl|ixv|iavf|ice|em|wm|bge|bce|bxe|bnxt|mce|mcx|mlxen|cxl?|cxgbe?|cc|ccv|cxlv"
    r"|re|rge|sfxge|ql|qlxgb|qlxge|qlnxe|oce|ena|vmx|mana|gve|aq|nfe|msk|sk|axa?|mgb|alc|ale|age|jme|mxge|sge|stge|vge"
    r"|ti|xge|nxge|dpni|mvneta|vtnet|xn|hn)[0-9]{1,3}): "
)

# Kind of the event, substring of every matching line, expression.
ROWS = (
    ("link down", "Link DOWN", ADDRESS + r" (?P<name>\S{1,40}): Port: (?P<link>[0-9]{1,3}) Link DOWN"),
    ("link down", "Link DOWN", r"infiniband (?P<name>\S{1,40}): Port: (?P<link>[0-9]{1,3}) Link DOWN"),  # Linux 6.14
    ("link down", "own", ADDRESS + r" (?P<name>\S{1,40}): (?:igb: \S{1,20} )?(?:NIC )?Link (?:is )?[Dd]own\b"),
    ("link down", "ink down", ADDRESS + r" (?P<name>\S{1,40}): link down\b"),
    *(("link down", f"ink {word}", _NET + r"(?:[Dd]own|DOWN)\b") for word in ("down", "Down", "DOWN", "is ")),
    ("link down", "link change old", r"(?P<name>\S{1,40}): atlantic: link change old [0-9]{2,6} new 0\b"),
    # The port is up again. Such a line says nothing without one that says that the port went down.
    *(("link up", f"ink {word}", _NET + r"(?:[Uu]p|UP)\b") for word in ("up", "Up", "UP", "is ")),
    ("link up", "link change old", r"(?P<name>\S{1,40}): atlantic: link change old [0-9]{1,6} new [0-9]{2,6}\b"),
    # It only ends "link down": the ports of containers become ready whenever a container starts.
    ("link ready", "link becomes ready", rf"ADDRCONF\(NETDEV_(?:CHANGE|UP)\): {_PORT}: link becomes ready"),
    ("link up", "Link ACTIVE", r"(?P<name>\S{1,40}): Port: (?P<link>[0-9]{1,3}) Link ACTIVE"),
    ("link up", "qede_link_update", r"\[qede_link_update:[0-9]{1,6}\((?P<name>[a-zA-Z][\w.-]{0,20})\)\]Link is up"),
    ("link down", "mlx4_en", r"mlx4_en: (?P<name>[a-zA-Z][\w.-]{0,20}): Link Down$"),
    ("link down", "qede_link_update", r"\[qede_link_update:[0-9]{1,6}\((?P<name>[a-zA-Z][\w.-]{0,20})\)\]Link is down"),
    ("link up", "NIC Up: ", rf"{ADDRESS}:? {_PORT}: NIC Up: "),  # alx
    # FreeBSD, and NetBSD
    ("link down", "link state ", _BSD + r"link state (?:changed to DOWN\b|DOWN \(was )"),
    ("link up", "link state ", _BSD + r"link state (?:changed to UP\b|UP \(was )"),
)
