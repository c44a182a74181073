"""The status of uncorrectable errors that lspci shows (UESta, ls-ecaps.c).

The bits stay set until they are cleared. UnsupReq and ACSViol are left out: some functions have them since boot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NAME = "UESta:"
STATUS = re.compile(r"UESta:[ \t]+(DLP[+-](?: \w{2,20}[+-]){5,24})")
_MEANT = ("DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP", "ECRC", "UncorrIntErr")


def uncorrected(found: re.Match[str]) -> Mapping[str, Any]:
    """The errors whose bits are set. None: no bit is set."""
    names = tuple(name for name in re.findall(r"\b(\w{2,20})\+", found[1]) if name in _MEANT)
    return {"uncorrected": names or None}
