"""The forms of kernel log lines whose parts become fields of an event.

Other lines that name a fault are in the catalog (models/catalog/messages).

Drivers write "DRIVER ADDRESS: text" (dev_printk). Sources of the patterns: NVRM and nvidia-nvswitch (NVIDIA, Xid
Errors; Fabric Manager user guide), drivers/pci/pcie/aer.c and dpc.c, drivers/pci/pci.c (__pcie_print_link_status),
drivers/pci/hotplug/pciehp_ctrl.c, mlx5_core (health.c, events.c, en_main.c), bnxt, ice, drivers/nvme/host
(nvme_log_error in core.c), drivers/edac/edac_mc.c, mm/memory-failure.c, drivers/thermal/intel/therm_throt.c,
block/blk-core.c (blk_errors), drivers/scsi/constants.c, fs/ext4/super.c, fs/xfs/xfs_fsops.c, fs/btrfs/messages.c.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from . import port_lines

_A = port_lines.ADDRESS
_A2 = _A.replace("address", "address2")
# Start of an Xid line. Older drivers omit "PCI:" or the domain, all omit the function, and MIG adds "GPU-I:05". Lists
# of people and programs omit "NVRM:".
_XID = (
    r"(?<!S)Xid \((?:PCI:)?(?P<address>(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?"
    r"(?: [^)]{1,40})?\): "
)
# The driver prints a comma behind the number. A line that ends with the number can be cut: 11 of 119. Longer numbers
# begin with 10 to 17. A letter behind the number is damage: "7O".
_CODE = r"(?P<code>1[89]|[2-9][0-9]|[0-9]{3,4}|[0-9]{1,2}(?=[ \t]*\S))(?!\w)"
_MLX5, _NICS = rf"mlx5_core {_A}(?: \S{{1,20}})?: ", rf"(?:bnxt_en|ice|i40e) {_A}(?: \S{{1,20}})?: "

# Bits of the status registers (drivers/pci/pcie/aer.c, aer_correctable_error_string and its older form).
_CORRECTED = {
    0: "RxErr|Receiver Error",
    6: "Bad ?TLP",
    7: "Bad ?DLLP",
    8: "Rollover|RE[LP]L?AY_NUM Rollover",
    12: "Timeout|Replay Timer Timeout",
    13: "NonFatalErr|Advisory Non-Fatal(?: Error)?",
    14: "CorrIntErr|Corrected Internal Error",
    15: "HeaderOF|Header Log Overflow",
}
_UNCORRECTED = {
    4: "DLP|Data Link Protocol",
    12: "TLP|Poisoned TLP(?: Received)?",
    13: "FCP|Flow Control Protocol",
    14: "CmpltTO|Completion Timeout",
    15: "CmpltAbrt|Completer Abort",
    16: "UnxCmplt|Unexpected Completion",
    17: "RxOF|Receiver Overflow",
    18: "MalfTLP|Malformed TLP",
    19: "ECRC",
    20: "UnsupReq|Unsupported Request",
    21: "ACSViol|ACS Violation",
    22: "UncorrIntErr|Uncorrectable Internal Error",
}
_AER_RECEIVED = (
    r": (?:AER: )?(?:(?P<name>Multiple) )?(?:Correct[a-z]{2,4}|Uncorrect[a-z]{2,4} \((?P<fatal>Fatal|Non-Fatal)\)) "
    r"error (?:message )?"
)
_DISK = r"(?P<subject>sd[a-z]{1,3}|nvme[0-9]{1,4}(?:c[0-9]{1,4})?n[0-9]{1,4}|vd[a-z]{1,2}|xvd[a-z]{1,2})"
# A block device with a file system. Loop devices hold images, and their errors are those of the image.
_STORE = r"(?P<subject>(?!loop|ram|zram|sr[0-9]|fd[0-9])[a-z][a-zA-Z0-9_.-]{1,30})"
_EDAC = r"EDAC MC(?P<memory>[0-9]{1,3}): "


class Form(Struct, frozen=True):
    """A line pattern: the event kind, a substring of every matching line, and a regular expression."""

    kind: str
    needle: str
    expression: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled expression. Most logs need few of them."""
        return _compiled(self.expression)


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def _forms(*rows: tuple[str, str, str]) -> tuple[Form, ...]:
    return tuple(Form(*row) for row in rows)


# Groups: address, subject and name are texts; code, link and count are decimal numbers; action is hexadecimal; rate and
# able are in Gb/s; fatal is a word of the line, or empty if every matching line is fatal. The first matching form
# applies.
FORMS = _forms(
    # Recovery action: 0 none, 1 GPU reset, 2 node reboot, 3 drain P2P, 4 drain and reset (nvml.h). The text after the
    # number differs between drivers.
    ("recovery", ": 154, ", _XID + r".{0,80}GPU recovery action changed from .{1,40} to 0x(?P<action>[0-9a-f]{1,2})\b"),
    # NVLink 5 columns: unit, fatal, contained, injected, link (-1: none), registers. The driver pads the columns with
    # spaces. Some drivers print the process first.
    (
        "xid",
        "Xid (",
        _XID + r"(?P<code>14[4-9]|150), (?:pid=[^,]{1,20}, )?(?:name=[^,]{1,40}, )?\S{1,40} {1,20}"
        r"(?P<fatal>Fatal|Non-?fatal) {1,9}\S{1,9} {1,9}\S{1,9} {1,9}Link (?P<link>-?[0-9]{1,3})\b",
    ),
    # 74; agents also print 71 to 73 with this text.
    ("xid", "Xid (", _XID + r"(?P<code>7[1-4]), .{0,120}\blink (?P<link>[0-9]{1,3})\b"),
    # The driver ended the channels of a program after an earlier error of the GPU, which the line names.
    ("xid", "caused by previous Xid ", _XID + r"45, .{0,200}\bcaused by previous Xid (?P<code>[0-9]{1,4})\b"),
    ("xid", "Xid (", _XID + _CODE),
    # An address that was damaged or written in another way. It stays as it is.
    (
        "xid",
        "Xid (",
        r"(?<!S)Xid \((?P<subject>(?:PCI:)?[0-9a-fA-F]{1,8}(?:[:.-][0-9a-fA-F]{1,4}){2})\): " + _CODE,
    ),
    # An address that a person removed: "PCI:...", "PCI:xxxx:xx:xx".
    ("xid", "Xid (", r"(?<!S)Xid \((?:PCI:)?(?:\.{2,3}|[xX*?0:.<>]{4,20})\): " + _CODE),
    # Lists of people and agents: the number before the address.
    (
        "xid",
        " PCI:",
        r"\b[Xx](?:id|ID):? (?P<code>[0-9]{1,3}) ?\([^()]{2,80}\) (?:was )?detected (?:on|at) (?:GPU )?"
        r"PCI:(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2})\b",
    ),
    (
        "xid",
        "Xid ",
        r"\bXid:? (?P<code>[0-9]{1,3}) "
        r"\((?:PCI:)?(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?\)",
    ),
    # The driver prints three lines for each SXid: description, severity and link, registers.
    (
        "sxid",
        "SXid (",
        rf"(?:nvidia-nvswitch[0-9]{{1,3}}: |\] |^)SXid \(PCI:{_A}\): (?P<code>[0-9]{{5}}), (?!Data|Severity)"
        r"(?:(?P<fatal>Fatal|Non-fatal), Link (?P<link>[0-9]{1,3})\b)?",
    ),
    # Its other lines. They count only if the first one is missing.
    (
        "sxid detail",
        "SXid (",
        rf"(?:nvidia-nvswitch[0-9]{{1,3}}: |\] |^)SXid \(PCI:{_A}\): (?P<code>[0-9]{{5}}), (?:Data \{{|Severity [0-9])",
    ),
    ("driver loaded", "NVRM: loading NVIDIA", r"NVRM: loading (?P<subject>NVIDIA) UNIX .{0,40}Kernel Module"),
    ("reset", ": reset done", _A + r": reset done$"),
    ("gpu init failed", "RmInitAdapter", rf"NVRM: GPU {_A}: RmInitAdapter failed"),
    ("gpu init failed", "NVRM: The NVIDIA", rf"NVRM: The NVIDIA GPU {_A}"),
    # The last of three lines; the first line names the GPU.
    ("gpu fell off", "NVRM: fallen", r"(?P<subject>NVRM): fallen off the bus"),
    ("gpu init failed", "NVRM: API mismatch", r"(?P<subject>NVRM): API mismatch: "),
    (
        "gpu init failed",
        "failed with error",
        rf"nvidia(?:: probe of {_A}| {_A.replace('address', 'address2')}: probe "
        r"with driver nvidia) failed with error",
    ),
    # The line before it names the port that received the message, and the device that sent it. Since Linux 6.14 the
    # severities are "Correctable" and "Uncorrectable".
    (
        "aer received",
        "received",
        _AER_RECEIVED + rf"received(?::| from) {_A}",
    ),
    ("aer received", "received: ", _A + _AER_RECEIVED + r"received: (?:id=|0x)?[0-9a-f]{4}\b"),  # before Linux 4.16
    ("aer corrected", "PCIe Bus Error", _A + r": (?:AER: )?PCIe Bus Error: severity=Correct"),
    (
        "aer",
        "PCIe Bus Error",
        _A + r": (?:AER: )?PCIe Bus Error: severity=Uncorrect[a-z]{2,4} "
        r"\((?P<fatal>Fatal|Non-Fatal)\)",
    ),
    ("aer", "aer_uncor_severity", _A + r": (?:AER: )?aer_uncor_severity: "),  # if firmware handles errors first
    # Names of errors. They count only if the lines before them are missing. The first name is that since Linux 4.18.
    *(
        ("aer corrected detail", f"[{bit:2d}] ", _A + rf": (?:AER: )? {{0,8}}\[{bit:2d}\] (?:{names})(?= |$)")
        for bit, names in _CORRECTED.items()
    ),
    *(
        ("aer detail", f"[{bit:2d}] ", _A + rf": (?:AER: )? {{0,8}}\[{bit:2d}\] (?:{names})(?= |$)")
        for bit, names in _UNCORRECTED.items()
    ),
    (
        "aer corrected detail",
        "is reported first",
        _A + r": AER: {1,6}Error of this Agent(?:\([0-9a-f]{4}\))? is reported first",
    ),
    # lib/ratelimit.c: the number of messages within one interval (5 s) that are not in the log
    (
        "aer suppressed",
        "callbacks suppressed",
        rf"(?:(?:{_A}: )?AER: (?:\w{{1,30}}: )?|(?:{_A2}: )?(?:pci_print_|cper_print_|pci_dev_)?aer\w{{0,30}}: )"
        r"(?P<count>[1-9][0-9]{0,8}) callbacks suppressed",
    ),
    ("surprise down", "[ 5]", _A + r": (?:AER: )? {0,8}\[ 5\] S(?:urprise Down|DES)(?P<fatal>)"),
    ("surprise down", "ontainment event", _A + r"(?::pcie[0-9a-f]{2,3})?: (?:DPC: |DPC )containment event(?P<fatal>)"),
    (
        "surprise down",
        "lot(",
        _A + r"(?::pcie[0-9a-f]{2,3})?: (?:pciehp: )?[Ss]lot\([^)]{1,20}\): "
        r"(?:Link Down|Card not present)",
    ),
    (
        "pcie limited",
        "limited by",
        _A + r": (?P<rate>[0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/s available PCIe bandwidth, "
        rf"limited by [0-9.]{{1,6}} GT/s (?:PCIe )?x[0-9]{{1,2}} link at {_A.replace('address', 'port')} "
        r"\(capable of (?P<able>[0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/s",
    ),
    (
        "nic",
        "mlx5_core ",
        _MLX5 + r".{0,60}(?:Health issue observed|device's health compromised|assert_var\[0\]|"
        r"timeout\. Will cause a leak of a command|[Hh]igh temperature on sensors)",
    ),
    ("module", "Port module event[error]", _MLX5 + r".{0,60}Port module event\[error\]: module (?P<link>[0-9]{1,3}), "),
    ("nic", "irmware", _NICS + r".{0,60}(?:[Ff]irmware (?:is )?(?:not responding|non-responsive|recovery mode))"),
    ("nic", "failed", _NICS + r"(?:PF reset failed|Rebuild failed)"),
    *port_lines.ROWS,
    # The kernel prints "critical medium error" of the block layer after the line of the driver.
    ("medium error", "critical medium error", rf"critical medium error, dev {_DISK}, sector "),
    ("unrecovered read", "Unrecovered Read Error", rf"{_DISK}: .{{1,80}}\bUnrecovered Read Error\b"),
    # Without CONFIG_NVME_VERBOSE_ERRORS the kernel prints "I/O Error" and the numbers of the status.
    ("unrecovered read", "(sct 0x2 / sc 0x81)", rf"{_DISK}: .{{1,80}}\(sct 0x2 / sc 0x81\)"),
    ("unrecovered read", "nrecovered read error", rf"\[{_DISK}\] .{{0,40}}Add\. Sense: Unrecovered read error"),
    ("file system stopped", "emounting file", rf"EXT[34]-fs \({_STORE}\): Remounting filesystem read-only"),
    (
        "file system stopped",
        "forced readonly",
        rf"BTRFS.{{1,20}}\(device {_STORE}(?:: state \w{{1,9}})?\): forced readonly",
    ),
    (
        "file system stopped",
        "XFS (",
        rf"XFS \({_STORE}\): (?:.{{1,120}}Shutting down filesystem|Filesystem has been shut down)",
    ),
    ("file system error", "-fs error (dev", rf"EXT[34]-fs error \(device {_STORE}\): "),
    (
        "file system error",
        "XFS (",
        rf"XFS \({_STORE}\): (?:metadata I/O error|Metadata (?:corruption|CRC error) detected|log I/O error)",
    ),
    (
        "nvme gone",
        "nvme nvme",
        r"nvme (?P<subject>nvme[0-9]{1,4}): (?:Removing after probe failure|Device not ready|"
        r"Disabling device after reset failure|[Rr]emoving after reset failure)",
    ),
    (
        "nvme",
        "nvme nvme",
        r"nvme (?P<subject>nvme[0-9]{1,4}): (?:I/O .{1,80}timeout, (?:abort|reset|disable)|"
        r"controller is down; will reset(?:: (?P<fatal>CSTS=0xffffffff))?)",
    ),
    # With the module ("on CPU_SrcID#0_MC#1_Chan#0_DIMM#0", old: "label "DIMM_A1""), or without.
    (
        "edac",
        "EDAC MC",
        _EDAC
        + r"(?P<count>[1-9][0-9]{0,8}) (?P<fatal>CE|UE) .{0,120}?"
        + r"\bon (?P<name>(?!any |unknown )[\w#:./-]{3,60})(?= |$)",
    ),
    ("edac", "EDAC MC", _EDAC + r"(?P<count>[1-9][0-9]{0,8}) (?P<fatal>CE|UE) "),
    ("edac", "EDAC MC", _EDAC + r"(?P<fatal>CE|UE) .{0,160}?\blabels? \"(?P<name>\w[\w#:./ -]{1,60})\""),
    ("edac", "EDAC MC", _EDAC + r"(?P<fatal>CE|UE) (?:page|row|- no information)"),
    ("edac", "ncorrected hardware memory error", r"mce: (?P<fatal>Uncorrected) hardware memory error"),
    ("edac", "Memory failure: ", r"(?P<fatal>Memory failure): 0x[0-9a-f]{1,16}: recovery action for "),
    # Linux 5.6 and later: "is above threshold" (commit f6656208f04e).
    ("throttle", "above threshold", r"CPU(?P<cpu>[0-9]{1,5}): (?:Package|Core) temperature (?:is )?above threshold"),
)
