"""What somebody wrote down beforehand: the catalog's machine types, and the operator's own file."""

from __future__ import annotations

import msgspec


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A machine type: how it is recognised and what it has. Counts are of whole healthy machines."""

    name: str
    source: str
    product: str | None = None  # DMI product name, a shell pattern: "p5.48xlarge"
    vendor: str | None = None  # DMI vendor, a shell pattern
    gpu: str | None = None  # or recognised by its GPUs: a shell pattern of their name
    gpus: int | None = None
    rdma: int | None = None  # RDMA devices
    nvme: int | None = None
    # Modes of its GPUs; without one they are compared with each other.
    mig: bool | None = None
    ecc: bool | None = None
    persistence: bool | None = None
    compute_mode: str | None = None  # "default", "exclusive process", "prohibited"
    bus_bandwidth: dict[str, tuple[float, float, float]] = {}  # by collective: low, typical, high in bytes per second


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The operator's file: what he knows better than any catalog."""

    ignore: dict[str, str] = {}  # "code" or "code:subject" -> the reason, which the report repeats
    fabric: tuple[str, ...] = ()  # ports that must be up, as shell patterns: "mlx5_*", "eth2"
    trust_virtual_links: bool = False  # this virtual machine's PCI tree is passed through whole
    machine: tuple[Machine, ...] = ()  # machine types of the site, looked at before the catalog's


def read_site(text: str) -> Site:
    """The site of a TOML file. ValueError says which line or key is wrong."""
    try:
        return msgspec.toml.decode(text, type=Site)
    except msgspec.DecodeError as broken:
        raise ValueError(str(broken)) from None
