"""Words that are known to be harmless: those of the catalog, of known_words.txt, and of the kernel's error messages.

The catalog (models/catalog, probes/synthetic/device_models.toml) has the log messages and the product names. The file
known_words.txt has the words of the patterns and of the sentences in the Python code that reads machines: a test writes
it, and a person reviews each new word. So a recording without other words gives the same findings.
"""

from __future__ import annotations

import errno
import os
from functools import cache

KNOWN_WORDS = os.path.join(os.path.dirname(__file__), "known_words.txt")
_LETTERS = bytes(code if code < 128 and chr(code).isalnum() else 32 for code in range(256))  # blanks for all others
# Endings that regular expressions do not spell out, file systems, states, files and types of memory of the kernel,
# makers of servers, processors and disks, launchers of jobs, days and months.
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
    usb std LRU mlocked unevictable truncated buddy dax thp swapcache slab mpirun srun torchrun kern vmunix ubuntu
    ifindex operstate removable cntlid
    Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec Mon Tue Wed Thu Fri Sat Sun
"""


@cache
def known_words() -> frozenset[str]:
    """The words, in lower case."""
    package = os.path.dirname(__file__).removesuffix(os.path.join("probes", "parsing"))
    catalog = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(os.path.join(package, "models", "catalog"))
        for name in names
        if name.endswith(".toml")
    ]
    files = [KNOWN_WORDS, *catalog, os.path.join(package, "probes", "synthetic", "device_models.toml")]
    texts = [text.encode() for text in (_OTHERS, *map(os.strerror, errno.errorcode))]
    return words_of(b" ".join([*map(_content, files), *texts]))


def words_of(text: bytes) -> frozenset[str]:
    """The words of a text, in lower case."""
    words = text.lower().translate(_LETTERS).split()
    return frozenset(word.decode() for word in set(words) if not word.isdigit())


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
