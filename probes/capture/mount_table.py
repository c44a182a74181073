"""Tables of mounts without the names of users, volumes, buckets and servers, and without options that can be secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..parsing.harmless import is_harmless, reduced

TABLES = re.compile(r"proc/(?:[0-9]+/|self/)?(?:mounts|mountinfo)")
_FOLDER_TEXT = """
    boot efi home tmp var log lib usr local opt srv mnt media dev shm pts mqueue hugepages proc sys fs cgroup
    unified kernel debug tracing security config bpf run lock user scratch raid data root etc hostname hosts
    resolv.conf mapper pstore efivars fuse connections binfmt_misc firmware credentials snap nfs lustre gpfs share
    shared work docker containers kubelet pods volumes containerd
"""
_FOLDERS = frozenset(_FOLDER_TEXT.split())
_FLAG_TEXT = """
    rw ro nosuid suid nodev dev noexec exec relatime noatime nodiratime strictatime lazytime sync async dirsync hard
    soft bg fg intr nolock lock noac nocto discard nodiscard barrier nobarrier inode64 inode32 attr2 noquota ssd
    nossd flock localflock lazystatfs user_xattr acl noacl errors=remount-ro errors=continue errors=panic
    data=ordered data=writeback data=journal proto=tcp proto=rdma proto=udp sec=sys sec=krb5 sec=krb5i sec=krb5p
"""
_FLAGS = frozenset(_FLAG_TEXT.split())
_NUMBER = re.compile(
    r"(?:[rwb]size|timeo|retrans|nconnect|acregmin|acregmax|acdirmin|acdirmax|stripe|sunit|swidth|logbufs|logbsize|size"
    r"|nr_inodes|mode|vers|nfsvers|minorversion|max_read|commit)=[0-9.]{1,12}[kKmMgG]?"
)
_FOLDER = re.compile("[A-Za-z0-9]?|[0-9]{1,6}|(?:nvme|sd|disk|raid|gpu|data|scratch|md|mnt|local)[0-9a-z]?[0-9]{0,3}")
_DEVICE = re.compile(
    "nvme[0-9]{1,4}n[0-9]{1,4}(?:p[0-9]{1,3})?|(?:sd|vd|xvd|hd)[a-z]{1,3}[0-9]{0,3}"
    "|(?:dm-|md|loop|zram|ram|sr|nbd|rbd)[0-9]{1,4}(?:p[0-9]{1,3})?"
)
_REMOTE = re.compile(r"nfs4?|cifs|smb3|lustre|ceph|fuse\..+")


def reduced_table(text: str, device: Callable[[str], str], stand_in: Callable[[str], str]) -> str:
    """The table with stand-ins. `device` replaces the parts of a network device, `stand_in` all other names."""
    return "\n".join(_line(line, device, stand_in) for line in text.split("\n"))


def words_of(text: str) -> Iterator[str]:
    """The names in the devices and folders of a table that are not known to be harmless."""
    for line in text.splitlines():
        point, fstype, source = _parts(line)
        names = [name for name in point.split("/") if not _is_known(name, point)]
        if not _is_remote(fstype, source):
            names += [name for name in source.split("/") if not _is_device(name, fstype)]
        yield from names


def _line(line: str, device: Callable[[str], str], stand_in: Callable[[str], str]) -> str:
    point, fstype, source = _parts(line)
    if not point:
        return line and "?"
    place = "/".join(name if _is_known(name, point) else stand_in(name) for name in point.split("/"))
    if _is_remote(fstype, source):
        origin = reduced(device(source), "log", stand_in)
    else:
        origin = "/".join(name if _is_device(name, fstype) else stand_in(name) for name in source.split("/"))
    kind = fstype if all(is_harmless(part, "log") for part in fstype.split(".")) else stand_in(fstype)
    mount, dash, super_block = line.partition(" - ")
    if not dash:
        return f"{origin} {place} {kind} {_options(line.split(' ')[3])} 0 0"
    fields = mount.split(" ")
    numbers = [field if re.fullmatch("[0-9:]{1,20}", field) else "0" for field in fields[:3]]
    return (
        f"{' '.join(numbers)} / {place} {_options(fields[5])} - {kind} {origin} {_options(super_block.split(' ')[-1])}"
    )


def _parts(line: str) -> tuple[str, str, str]:
    """Mount point, type and source of a line of proc_pid_mounts(5) or proc_pid_mountinfo(5); empty if it is neither."""
    mount, dash, super_block = line.partition(" - ")
    fields, last = mount.split(" "), super_block.split(" ")
    if dash and len(fields) > 5 and len(last) > 2 and fields[4].startswith("/"):
        return fields[4], last[0], last[1]
    if not dash and len(fields) > 3 and fields[1].startswith("/"):
        return fields[1], fields[2], fields[0]
    return "", "", ""


def _options(text: str) -> str:
    """The options that are flags and numbers of the kernel."""
    return ",".join(one for one in text.split(",") if one in _FLAGS or _NUMBER.fullmatch(one)) or "rw"


def _is_remote(fstype: str, source: str) -> bool:
    return bool(_REMOTE.fullmatch(fstype)) and (":/" in source or source.startswith("//"))


def _is_known(name: str, point: str) -> bool:
    """Whether a folder has a usual name, or the kernel names it ("/sys/fs/cgroup/memory")."""
    of_kernel = point.startswith(("/sys/", "/proc/")) and is_harmless(name, "log")
    return of_kernel or name in _FOLDERS or bool(_FOLDER.fullmatch(name))


def _is_device(name: str, fstype: str) -> bool:
    return name in ("", "dev", "mapper", "none", "proc", "sysfs", fstype) or bool(_DEVICE.fullmatch(name))
