"""The status of errors that lspci shows (UESta and CESta, ls-ecaps.c; DevSta, ls-caps.c).

The bits stay set until they are cleared. UnsupReq and ACSViol are left out: some functions have them since boot. So is
the NonFatalErr of an unsupported request. CorrErr, RxErr and the corrected NonFatalErr are left out, too: most machines
have them since boot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_DEVICE = re.compile(r"DevSta:[ \t]+CorrErr[+-] (?:NonFatalErr|UncorrErr)([+-]) FatalErr([+-]) Unsupp?Req([+-])")
_UNCORRECTED = re.compile(r"UESta:[ \t]+(DLP[+-](?: \w{2,20}[+-]){5,24})")
_CORRECTED = re.compile(r"CESta:[ \t]+(RxErr[+-](?: \w{2,20}[+-]){4,9})")
_OF_LINKS = ("BadTLP", "BadDLLP", "Rollover", "Timeout")
_MEANT = ("DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP", "ECRC", "UncorrIntErr")


def _uncorrected(found: re.Match[str]) -> Mapping[str, Any]:
    """The errors whose bits are set. None: no bit is set."""
    names = tuple(name for name in re.findall(r"\b(\w{2,20})\+", found[1]) if name in _MEANT)
    return {"uncorrected": names or None}


def _of_device(found: re.Match[str]) -> Mapping[str, Any]:
    """The classes of errors that the device detected. None: no bit is set."""
    names = (*("NonFatalErr",) * (found[1] == "+" and found[3] == "-"), *("FatalErr",) * (found[2] == "+"))
    return {"uncorrected": names or None}


def _corrected(found: re.Match[str]) -> Mapping[str, Any]:
    """The errors of the link whose bits are set. None: no bit is set."""
    return {"corrected": tuple(name for name in re.findall(r"\b(\w{2,20})\+", found[1]) if name in _OF_LINKS) or None}


# By the first word of the line. The status of the device is before those that name the errors.
ERRORS = {
    "DevSta:": ((_DEVICE, _of_device),),
    "UESta:": ((_UNCORRECTED, _uncorrected),),
    "CESta:": ((_CORRECTED, _corrected),),
}
