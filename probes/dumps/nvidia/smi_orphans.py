"""Values of `nvidia-smi -q` without the headings above them: the name and the shape of the value give the meaning.

Names that several sections share ("Total", "Current") have no entry, unless the shapes of their values differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_ACTIVE = "Active|Not Active"
_WATTS = r"[0-9]{1,4}\.[0-9]{1,2} W"
_YES = "Yes|No"
_ON = "Enabled|Disabled"
_COUNT = "[0-9]{1,9}"
_REASONS = "Clocks Event Reasons"

# The name of a line, the shape of its value, and the name with its headings.
_ROWS: tuple[tuple[str, str, str], ...] = (
    *(
        (name, _ACTIVE, f"{_REASONS}/{name}")
        for name in (
            *("Idle", "Applications Clocks Setting", "SW Power Cap", "HW Slowdown", "Sync Boost"),
            *("SW Thermal Slowdown", "Display Clock Setting"),
        )
    ),
    *((name, _ACTIVE, f"HW Slowdown/{name}") for name in ("HW Thermal Slowdown", "HW Power Brake Slowdown")),
    *(
        (name, _WATTS, f"GPU Power Readings/{name}")
        for name in (
            *("Instantaneous Power Draw", "Power Draw", "Average Power Draw", "Current Power Limit"),
            *("Enforced Power Limit", "Default Power Limit"),
        )
    ),
    ("Power Limit", _WATTS, "GPU Power Readings/Enforced Power Limit"),
    *(
        (name, "-?[0-9]{1,3} C", f"Temperature/{name}")
        for name in ("GPU Current Temp", "GPU Slowdown Temp", "GPU T.Limit Temp", "GPU Slowdown T.Limit Temp")
    ),
    *((name, "[0-9]{1,3} %", "Utilization/GPU") for name in ("GPU", "Gpu")),
    ("Channel Repair Pending", _YES, "ECC Errors/Channel Repair Pending"),
    ("TPC Repair Pending", _YES, "ECC Errors/TPC Repair Pending"),
    ("Unrepairable Memory", _YES, "Unrepairable Memory"),
    ("Remapping Failure Occurred", _YES, "Remapped Rows/Remapping Failure Occurred"),
    ("Correctable Error", _COUNT, "Remapped Rows/Correctable Error"),
    ("Uncorrectable Error", _COUNT, "Remapped Rows/Uncorrectable Error"),
    ("Pending", _YES, "Remapped Rows/Pending"),
    ("Pending Page Blacklist", _YES, "Retired Pages/Pending Page Blacklist"),
    ("SRAM Threshold Exceeded", _YES, "Aggregate/SRAM Threshold Exceeded"),
    ("Replays Since Reset", _COUNT, "PCI/Replays Since Reset"),
    ("Bus Id", "[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\\.[0-7]", "PCI/Bus Id"),
    ("State", "Completed|In Progress|Not Started", "Fabric/State"),
    ("Status", "Success|Unknown Error", "Fabric/Status"),
    ("CliqueId", _COUNT, "Fabric/CliqueId"),
    ("Summary", "Healthy|Unhealthy|Limited Capacity", "Health/Summary"),
    ("Bandwidth", "Full|Degraded", "Health/Bandwidth"),
    ("Route Recovery in progress", "True|False", "Health/Route Recovery in progress"),
    ("Route Unhealthy", "True|False", "Health/Route Unhealthy"),
    ("Access Timeout Recovery", "True|False", "Health/Access Timeout Recovery"),
    ("Current", "[0-9]{1,2}x", "Link Width/Current"),
    ("Max", "[0-9]{1,2}x", "Link Width/Max"),
    ("Drain and Reset Recommended", _YES, "GPU Reset Status/Drain and Reset Recommended"),
    ("Reset Required", _YES, "GPU Reset Status/Reset Required"),
    ("None", r"[0-9]{1,5} bank\(s\)", "Bank Remap Availability Histogram/None"),
)
_ALONE = (  # names without a heading, with the shape of their values
    ("Product Name", r"\S.{1,60}"),
    ("GPU UUID", "GPU-[0-9a-f-]{8,40}"),
    ("VBIOS Version", r"[0-9A-F.]{8,20}"),
    ("Performance State", "P[0-9]{1,2}"),
    ("Persistence Mode", _ON),
    ("Compute Mode", "Default|Exclusive_Process|Prohibited|Exclusive_Thread"),
    ("GPU Recovery Action", r"\S.{1,40}"),
)
_HEADINGS = "PCIe Generation|Link Width|HW Slowdown|Max Clocks|Volatile|Aggregate|GPU Reset Status|MIG Mode"
# Words of many tools: they count only beside other lines
_WEAK = ("Pending", "State", "Status", "Idle", "Bus Id", "Summary", "Bandwidth", "GPU", "Gpu")
_BY_NAME: Mapping[str, tuple[tuple[str, str], ...]] = {
    name: tuple((shape, path) for other, shape, path in _ROWS if other == name) for name, _, _ in _ROWS
}
ANY_LINE = (
    rf"^[ \t]*(?:(?:{_HEADINGS})[ \t]*$|"
    + "|".join(
        f"{re.escape(name)}[ \t]*:[ \t]+(?:{shape})[ \t]*$"
        for name, shape in (*_ALONE, *(row[:2] for row in _ROWS))
        if name not in _WEAK
    )
    + r"|Pending[ \t]*:[ \t]+(?:Yes|No)[ \t]*\n[ \t]*Remapping Failure"
    + r"|<([a-z_0-9]{3,60})>[^<\n]{1,80}</[a-z_0-9]{3,60}>[ \t]*$|<[a-z]{2,20}_[a-z_]{2,40}>[ \t]*$)"
)
TAG = re.compile(r"\s*<[a-z_0-9]{3,60}>(?:[^<\n]{1,80}</[a-z_0-9]{3,60}>|[ \t]*\n)")  # a line of the output as XML


def path_of(name: str, value: str) -> str | None:
    """The name with its headings. None: the name alone is not enough, or the value has another shape."""
    return next((path for shape, path in _BY_NAME.get(name, ()) if re.fullmatch(shape, value)), None)
