"""Outputs of tools that show no link: they are known, and linkgauge draws no conclusion from them.

Each row has the expression for a line of the tool. Some lines have a setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ....models.facts.machine import Setting
from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
from ..core.part import Part

_ROWS: Mapping[str, str] = {
    "cpupower": r"analyzing CPU \d{1,4}:|hardware limits: \d|current policy: frequency should be within"
    r"|current CPU frequency: |available cpufreq governors: |boost state support:",
    "turbostat": r"turbostat(?: version|: )|(?:\S{1,20}[ \t]{1,8}){1,6}Avg_MHz[ \t]{1,8}Busy%[ \t]"
    r"|cpu\d{1,4}: (?:MSR_|cpufreq (?:driver|governor): |POLL: |EPB: )|CPUID\(\d{1,10}\): ",
    "numastat": r"(?:[ ]{8,60}node\d{1,3})+[ \t]*$|(?:numa_hit|numa_miss|numa_foreign|interleave_hit|other_node)[ ]+\d"
    r"|Per-node process memory usage|Per-node numastat info",
    "/proc/meminfo": r"(?:MemTotal|MemAvailable|HugePages_Total|AnonHugePages):[ ]{1,20}\d",
    "free": r"[ ]{5,30}total[ ]{2,20}used[ ]{2,20}free|Mem:[ ]{2,20}[\d.]{1,12}[KMGT]?i?[ ]{2,20}[\d.]",
    "iostat": r"avg-cpu:[ ]{1,4}%user|Device:?[ ]{2,30}(?:r/s|rrqm/s|tps)[ ]",
    "vmstat": r"procs -{3,20}memory-|[ ]{0,3}r[ ]{1,3}b[ ]{1,6}swpd[ ]",
    "sysbench": r"sysbench \d\.\d|Total operations: \d{1,15} \(|[\d.]{1,20} MiB transferred \(",
    "ipmitool": r"[ ]{0,4}[0-9a-f]{1,4} \|[ ]{1,2}(?:\d\d/\d\d/\d{2,4}|Pre-Init)[ ]{1,2}\|[ ]?\d"
    r"[^|\n]{3,30}\|[^|\n]{3,60}\|"
    r"|[\w +.#/-]{2,24}[ ]{1,24}\| [^|\n]{2,24}[ ]{1,20}\| (?:ok|ns|nc|cr|nr)[ \t]*(?:\||$)"
    r"|[\w +.#/-]{2,24}[ ]{1,24}\| [0-9A-F]{2}h \| (?:ok|ns|nc|cr|nr)[ ]",
    "virsh": r"<domain type='(?:kvm|qemu|xen|hyperv)'|<hostdev mode='subsystem' type='pci'|dev: [\w-]{3,30}, id \""
    r"|(?:[\w/.-]{0,40}/)?qemu-(?:system-\w{3,10}|kvm) -|-device (?:vfio-pci|pcie-root-port)[, ]",
    "lvs": r"LV[ ]{2,60}VG[ ]{2,60}Attr[ ]{2,20}LSize|PV[ ]{2,60}VG[ ]{2,40}Fmt[ ]{2,10}Attr|VG[ ]{2,40}#PV[ ]{1,4}#LV",
    "nvme": r"NVME Identify Controller:|vid[ ]{2,12}: 0x[0-9a-f]{4}$|Error Log Entries for device:nvme\d",
}
_ALONE = r"cpu MHz[ \t]{1,9}: \d{2,5}\.\d{3}[ \t]*$"  # of /proc/cpuinfo, which has its own reader
ANY_LINE = rf"^[ \t]*{_ALONE}"
BEGIN = rf"^(?:[ \t]*(?:{'|'.join(_ROWS.values())}))"
_TOOLS = {
    name: re.compile(rf"^[ \t]*(?:{form})", re.MULTILINE)
    for name, form in {**_ROWS, "the processors' frequencies": _ALONE}.items()
}
_FREQUENCY = r"(?P<{name}>\d{{1,5}}(?:\.\d{{1,3}})?) ?(?P<{name}_unit>[MG])Hz"
_LIMITS = re.compile(rf"hardware limits: [\d.]{{1,8}} ?[MG]Hz - {_FREQUENCY.format(name='limit')}")
_POLICY = re.compile(rf"should be within [\d.]{{1,8}} ?[MG]Hz and {_FREQUENCY.format(name='policy')}")
_SETTINGS = re.compile(
    r"(?:cpufreq (?P<driver>driver): |^[ \t]*(?P<pstate>driver): |cpufreq (?P<governor>governor): "
    r"|The (?P<policy>governor) \")(?P<value>[a-z][\w-]{2,30})",
    re.MULTILINE,
)


def read(part: Part) -> Iterator[Record]:
    """The frequency policy, and a note for each tool."""
    known = set[str]()
    for number, found in part.matches(_SETTINGS):
        key = "scaling_driver" if found["driver"] or found["pstate"] else "scaling_governor"
        if key not in known:
            known.add(key)
            text = part.text[part.text.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0]
            yield Setting(key=key, value=found["value"], cites={"value": part.cite(number, text)})
    yield from _frequency_limit(part)
    for name, form in _TOOLS.items():
        if form.search(part.text):
            why = f"the output of {name} shows no link"
            yield NotChecked(what="dump", subject=name, reason=Reason.OTHER, path=part.where(0), detail=why)


def _frequency_limit(part: Part) -> Iterator[Setting]:
    """The lowest limit of the policies, in percent of the highest frequency of the hardware."""
    limits = [_megahertz(found, "limit") for _, found in part.matches(_LIMITS)]
    policies = [(_megahertz(found, "policy"), number, found[0]) for number, found in part.matches(_POLICY)]
    if limits and policies and 0 < min(policies)[0] <= max(limits):
        lowest, number, text = min(policies)
        yield Setting(
            key="frequency_limit",
            value=str(round(100 * lowest / max(limits))),
            cites={"value": part.cite(number, text)},
        )


def _megahertz(found: re.Match[str], name: str) -> float:
    return float(found[name]) * (1000 if found[f"{name}_unit"] == "G" else 1)
