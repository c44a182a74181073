"""The status of uncorrectable errors that lspci shows (UESta, ls-ecaps.c; DevSta, ls-caps.c).

The bits stay set until they are cleared. UnsupReq and ACSViol are left out: some functions have them since boot. So is
the NonFatalErr of an unsupported request. CorrErr is left out, too: most machines have it since boot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NAME, DEVICE = "UESta:", "DevSta:"
DEVICE_STATUS = re.compile(r"DevSta:[ \t]+CorrErr[+-] (?:NonFatalErr|UncorrErr)([+-]) FatalErr([+-]) Unsupp?Req([+-])")
STATUS = re.compile(r"UESta:[ \t]+(DLP[+-](?: \w{2,20}[+-]){5,24})")
_MEANT = ("DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP", "ECRC", "UncorrIntErr")


def uncorrected(found: re.Match[str]) -> Mapping[str, Any]:
    """The errors whose bits are set. None: no bit is set."""
    names = tuple(name for name in re.findall(r"\b(\w{2,20})\+", found[1]) if name in _MEANT)
    return {"uncorrected": names or None}


def of_device(found: re.Match[str]) -> Mapping[str, Any]:
    """The classes of errors that the device detected. None: no bit is set."""
    names = (*("NonFatalErr",) * (found[1] == "+" and found[3] == "-"), *("FatalErr",) * (found[2] == "+"))
    return {"uncorrected": names or None}
