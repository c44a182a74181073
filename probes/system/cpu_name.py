"""The call `cpu_name`: the name of processors that the kernel does not name, from py-cpuinfo (extra `cpu`)."""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.machine import Package
from ...models.facts.records import Evidence, Record


def name(*packages: str) -> Iterator[Record]:
    """Yield a `Package` with a name for each of the packages. Nothing without py-cpuinfo, or if it knows no name.

    It runs programs such as lscpu and takes about a second.
    """
    try:
        from cpuinfo import get_cpu_info
    except ImportError:
        return
    brand = get_cpu_info().get("brand_raw")
    if isinstance(brand, str) and brand.isprintable() and brand.strip():
        for package in packages:
            yield Package(key=package, model=brand.strip(), cites={"model": Evidence("py-cpuinfo brand_raw", brand)})
