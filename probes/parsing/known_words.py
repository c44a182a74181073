"""Words that are known to be harmless: those of linkgauge's own published files, and of the kernel's error messages.

The files contain the words of the patterns that linkgauge searches, of product names, and of its own sentences. So a
recording without other words gives the same findings.
"""

from __future__ import annotations

import errno
import os
from functools import cache

_LETTERS = bytes(code if code < 128 and chr(code).isalnum() else 32 for code in range(256))  # blanks for all others
# Endings that regular expressions of the files do not spell out, file systems and states of the kernel, and makers of
# servers, processors and disks.
_OTHERS = """
    autofs bpf btrfs cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs exfat ext2 ext3 ext4 f2fs fuse fusectl
    hugetlbfs iso9660 mqueue nsfs overlay proc pstore ramfs rpc pipefs securityfs selinuxfs squashfs sysfs tmpfs tracefs
    udf vfat xfs zfs none unknown enabled disabled corrected correctable uncorrected uncorrectable nonfatal
    Supermicro Gigabyte Quanta Wiwynn Foxconn Inspur Lenovo Hewlett Packard Enterprise ProLiant Dell PowerEdge ASUSTeK
    Fujitsu Cisco Bull Atos Penguin ThinkSystem Inc Corporation Ltd Systems Computer Computing Cloud Technology Server
    Intel AMD EPYC Xeon Platinum Gold Silver Processor Core Neoverse Grace Samsung Micron Kioxia Toshiba Hynix Solidigm
    Seagate Western Digital Virtual Machine Standard UEFI
    Ryzen Threadripper ASUS PRIME WIFI xlarge metal mgag200 ast bochs cirrus enx nqn
    ifb dummy tunl sit gre gretap erspan tnl vti teql
    nvmexpress discovery serialnumber inch wwid nas
    GPC TPC SM ESR XC0 XC1 XC2 PRIV TSENSE NETIR LINK EVT INT BER EVENT RLW TLW RXPIPE REMAP RSTB SRC TRACK CTRL PIPE
    MSE WATCHDOG LTSSM sequenceId SrcID Transmitter Receiver Requester Completer area activate UTC CET
"""


@cache
def known_words() -> frozenset[str]:
    """The words, in lower case."""
    package = os.path.dirname(__file__).removesuffix(os.path.join("probes", "parsing"))
    folders = [folder for part in ("models", "probes") for folder in os.walk(os.path.join(package, part))]
    files = [os.path.join(folder, name) for folder, _, names in folders for name in names]
    texts = [_content(file) for file in files if file.endswith((".py", ".toml"))]
    texts += [text.encode() for text in (_OTHERS, *map(os.strerror, errno.errorcode))]
    words = b" ".join(texts).lower().translate(_LETTERS).split()
    return frozenset(word.decode() for word in set(words) if not word.isdigit())


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
