"""Evidence for the ports of NICs: that a port should be up, and at which rate."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.nics import nic_of
from ...facts.machine import Net, Port, Rdma
from ...facts.units import as_gigabits
from ...inventory.cohorts import strict_majority
from ...inventory.present import earlier_item
from ...inventory.snapshot import Snapshot
from ...report import Corroboration
from ..core.claims import EVIDENCE, Claim, Support, baseline
from ..core.machine_expectations import profile
from .port_roles import role_of
from .ports import AnyPort, cohort, function_of, is_used, network_of, once_per_port, rate_of, real, up

STATE, RATE = "port state", "port rate"
_COMMON = "only equal ports show the rate, and all may have the same fault"
_UNUSED = "nothing says that a cable belongs there"
_SMALLEST_COHORT = 2


def port_claims(snapshot: Snapshot) -> Iterator[Claim]:
    """The claims of all ports."""
    ports: list[AnyPort] = [*snapshot.of(Port).values(), *snapshot.of(Net).values()]
    for port in ports:
        if real(snapshot, port):
            made = (state_claim(snapshot, port), rate_claim(snapshot, port))
            yield from (claim for claim in made if claim)


def is_wanted(snapshot: Snapshot, port: AnyPort) -> bool:
    """Whether somebody wants the port to be up: it is InfiniBand, or its network device is enabled."""
    network = network_of(snapshot, port)
    return bool(isinstance(port, Port) and port.link_layer == "InfiniBand" or (network and network.enabled))


def state_claim(snapshot: Snapshot, port: AnyPort) -> Claim | None:
    """The claim that a port is up (1) or down (0). None: not known, or a port that is not in use."""
    return _claims(snapshot, port)[0]


def rate_claim(snapshot: Snapshot, port: AnyPort) -> Claim | None:
    """The claim of the rate of a port that is up. None: not known."""
    return _claims(snapshot, port)[1]


@once_per_port
def _claims(snapshot: Snapshot, port: AnyPort) -> tuple[Claim | None, Claim | None]:
    """The claims of the state and of the rate."""
    return _state_claim(snapshot, port), _rate_claim(snapshot, port)


def _state_claim(snapshot: Snapshot, port: AnyPort) -> Claim | None:
    state, role = up(port), role_of(snapshot, port)
    if state is None or (role is None and (state or not is_wanted(snapshot, port))):
        return None
    supports = (Support(EVIDENCE[role.basis], 1, role.why),) if role else ()
    return Claim(
        group="links", subject=port.key, quantity=STATE, observed=int(state), supports=supports, doubt=_doubt(role)
    )


def _doubt(role: object) -> str | None:
    return _UNUSED if role is None else None


def _rate_claim(snapshot: Snapshot, port: AnyPort) -> Claim | None:
    """The partner of a port is no evidence: its own rate may be too low."""
    rate = rate_of(snapshot, port)
    if rate is None or not is_used(snapshot, port):
        return None
    supports = tuple(one for one in (_of_machine(snapshot, port), _of_product(snapshot, port)) if one)
    equal = _of_cohort(snapshot, port)
    item = earlier_item(snapshot, "port", port.key)
    earlier = baseline(item, item.rate, rate, "its rate") if item and item.rate else ()
    return Claim(
        group="links",
        subject=port.key,
        quantity=RATE,
        observed=rate,
        supports=(*supports, *((equal,) if equal else ()), *earlier),
        doubt=_COMMON if equal and not supports else None,
    )


def _of_machine(snapshot: Snapshot, port: AnyPort) -> Support | None:
    """The rate in the machine type, for ports that certainly belong to the fabric. Others are slower by design."""
    known = profile(snapshot)
    role = role_of(snapshot, port)
    if not (isinstance(port, Port) and known and known.machine.rdma_rate and role and role.severity == "critical"):
        return None
    by: Corroboration = "site" if known.basis == "site" else "profile"
    return Support(by, known.machine.rdma_rate, f"{known.machine.name}: {known.source}")


def _of_product(snapshot: Snapshot, port: AnyPort) -> Support | None:
    """The rate of a NIC whose ids determine it. A hypervisor may limit the rate in a guest."""
    function = function_of(snapshot, port)
    nic = nic_of(function) if function else None
    return Support("product", nic.rate, f"{nic.name} ({nic.source})") if nic and nic.rate else None


def _of_cohort(snapshot: Snapshot, port: AnyPort) -> Support | None:
    """The rate of most equal ports of this node, at least two others."""
    adapter = snapshot.of(Rdma).get(port.device or "") if isinstance(port, Port) else None
    known = [
        rate
        for other in cohort(snapshot, port)
        if is_used(snapshot, other) and (rate := rate_of(snapshot, other)) is not None
    ]
    usual = strict_majority(known) or (known[0] if len(known) == _SMALLEST_COHORT == known.count(known[0]) else None)
    nameless = adapter is not None and not (adapter.address or adapter.hca_type or adapter.board_id)
    if usual is None or (nameless and any(rate < usual for rate in known)):
        return None  # slower ports of an unknown product may belong to another network
    return Support(
        "cohort",
        usual,
        f"{known.count(usual)} of the {len(known)} other equal ports of this node run at {as_gigabits(usual)}",
    )
