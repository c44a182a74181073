"""Secrets of thirty kinds, and nodes that hold them in every place that linkgauge reads."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Callable, Mapping

import msgspec

from linkgauge.probes.host.entries import Entry, Folder, UnreadableFile
from linkgauge.probes.host.recorded import Recorded


def _letters(kind: str, number: int, size: int) -> str:
    """Letters and digits that look random and are the same in each run."""
    return base64.b32encode(hashlib.sha512(f"{kind} {number}".encode()).digest()).decode()[:size]


def _hex(kind: str, number: int, size: int) -> str:
    return hashlib.sha512(f"{kind} {number}".encode()).hexdigest()[:size]


def _pairs(digits: str, mark: str = ":", size: int = 2) -> str:
    return mark.join(digits[at : at + size] for at in range(0, len(digits), size))


_KINDS: Mapping[str, Callable[[int], str]] = {
    "user": lambda n: f"rosalind{n}",
    "person": lambda n: f"Zbigniew-Brzeczyszczykiewicz{n}",
    "mail": lambda n: f"rosalind{n}@wonka-corp.example",
    "customer": lambda n: f"wonka{n}",
    "project": lambda n: f"oompa-loompa-{n}",
    "domain": lambda n: f"gpu{n}.wonka-corp.example",
    "server": lambda n: f"filer{n}.wonka.internal",
    "password": lambda n: f"hunter{n}Violet!x"[: 14 + n % 3],
    "phrase": lambda n: f"everlasting-gobstopper-{n}",
    "base64": lambda n: base64.b64encode(_letters("base64", n, 24).encode()).decode().rstrip("="),
    "jwt": lambda n: f"eyJhbGciOi{_letters('jwt', n, 20)}.eyJzdWIi{_letters('jwt2', n, 20)}",
    "github": lambda n: f"ghp_{_letters('github', n, 36)}",
    "aws key": lambda n: f"AKIA{_letters('aws', n, 16)}",
    "aws secret": lambda n: _letters("secret", n, 40).lower(),
    "hex token": lambda n: _hex("token", n, 40),
    "bucket": lambda n: f"wonka-weights-{n}",
    "disk serial": lambda n: f"S6CK{_letters('disk', n, 10)}",
    "board serial": lambda n: f"{1321000000000 + n * 7919}",
    "chassis serial": lambda n: f"CZJ{_letters('chassis', n, 7)}",
    "asset tag": lambda n: f"WNK-{_letters('asset', n, 6)}",
    "uuid": lambda n: str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{n}")),
    "mac": lambda n: f"b8:ce:f6:{_pairs(_hex('mac', n, 6))}",
    "guid": lambda n: f"b8ce:f603:{_pairs(_hex('guid', n, 8), size=4)}",
    "wwn": lambda n: f"eui.0025{_hex('wwn', n, 12)}",
    "ipv4": lambda n: f"10.77.{n % 250}.{n % 99 + 100}",
    "ipv6": lambda n: f"fd12:3456:789a::{n + 0x1000:x}",
    "interface": lambda n: f"wonkanet{n}",
    "volume": lambda n: f"vg_wonka-lv_oompa{n}",
    "container": lambda n: _hex("container", n, 64),
    "program": lambda n: f"train_wonka_{n}.py",
}
KINDS = tuple(_KINDS)
# Lines of the kernel log. linkgauge evaluates each of them; the place of the secret is free text.
_LINES = (
    "NVRM: Xid (PCI:{gpu}): 31, pid=4711, name={}, Ch 00000008, intr 00000000. MMU Fault",
    "NVRM: Xid (PCI:{gpu}): 13, pid=4711, name=python, Graphics Exception: {}",
    "EXT4-fs error (device sda2): ext4_find_entry:1455: inode #2: comm {}: reading directory lblock 0",
    "mlx5_core {nic}: {}: Port module event[error]: module 0, Cable error, Bus stuck",
    "nvme nvme0: I/O 12 QID 3 timeout, aborting, serial {}",
    "EDAC MC0: 1 CE memory read error on {} (channel:0 slot:0 page:0x0)",
    "critical medium error, dev sda, sector 1234 op 0x0:(READ) flags 0x80700 for {}",
    "Memory failure: 0x1234567: recovery action for {}: Recovered",
)
_MOUNTS = (
    "/dev/mapper/{} /mnt/{} ext4 rw,relatime 0 0",
    "{}:/{} /srv/{} nfs4 rw,vers=4.2,addr={},clientaddr={} 0 0",
    "//{}/{} /media/{} cifs rw,username={},password={},domain={} 0 0",
    "{}@{}:/{} /home/{} fuse.sshfs rw,user_id={} 0 0",
    "s3fs /mnt/{} fuse.s3fs rw,passwd={},bucket={},url={} 0 0",
    "overlay /var/lib/{} overlay rw,lowerdir=/var/{},upperdir=/{} 0 0",
    "{} /opt/{} zfs rw,xattr,{} 0 0",
    "tmpfs /run/user/{} tmpfs rw,size=1k,uid={} 0 0",
)


def planted(node: Recorded, first: int, in_calls: bool = True) -> tuple[Recorded, dict[str, str]]:
    """The node with secrets from the number `first` on, and the kind of each secret."""
    secrets: dict[str, str] = {}

    def fresh(kind: str = "") -> str:
        number = first + len(secrets)
        kind = kind or KINDS[number % len(KINDS)]
        secret = _KINDS[kind](number)
        secrets[secret] = kind
        return secret

    entries = {**node.entries, **_files(node, fresh)}
    if not in_calls:
        return Recorded(node.taken, entries, node.calls), secrets
    calls = {call: tuple(_with_secrets(line, fresh) for line in lines) for call, lines in node.calls.items()}
    return Recorded(node.taken, entries, {**calls, **_calls(fresh)}), secrets


def _files(node: Recorded, fresh: Callable[..., str]) -> dict[str, Entry]:
    def filled(form: str) -> str:
        return form.format(*(fresh() for _ in range(form.count("{}"))), gpu="0000:1b:00", nic="0000:1a:00.0")

    log = (f"4,{number},{number + 100},-;{filled(form)}" for number, form in enumerate(_LINES * 2))
    mounts = [str(node.entries.get("proc/self/mounts", "")), *map(filled, _MOUNTS)]
    net = "sys/devices/virtual/net"
    texts: dict[str, Entry] = {
        "dev/kmsg": "\n".join(log),
        "proc/self/mounts": "\n".join(mounts).strip(),
        "proc/sys/kernel/hostname": fresh("domain"),
        "proc/sys/kernel/osrelease": f"6.8.0-45-{fresh('customer')}",
        "proc/self/status": f"Name:\t{fresh('program')}\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-15",
        "proc/1/cgroup": f"0::/kubepods/pod{fresh('uuid')}/{fresh('container')}",
        "proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64  570.124.06\nGCC version: {fresh('mail')}",
        "run/cloud-init/instance-data.json": f'{{"ds": {{"meta_data": {{"instance_type": "{fresh("project")}"}}}}}}',
        "sys/devices/virtual/dmi/id/product_serial": fresh("chassis serial"),
        "sys/devices/virtual/dmi/id/board_serial": fresh("chassis serial"),
        "sys/devices/virtual/dmi/id/chassis_asset_tag": fresh("asset tag"),
        "sys/class/nvme/nvme0/serial": fresh("disk serial"),
        "sys/class/nvme/nvme0/subsysnqn": f"nqn.2014-08.org.nvmexpress:uuid:{fresh('uuid')}",
        "sys/class/nvme/nvme0/wwid": fresh("wwn"),
        f"{net}/{fresh('interface')}": Folder(),
        f"{net}/{(name := fresh('interface'))}": Folder(),
        f"{net}/{name}/ifalias": fresh("project"),
        f"{net}/{name}/address": fresh("mac"),
        f"{net}/{name}/phys_port_id": fresh("hex token"),
        "sys/class/infiniband/mlx5_0/node_desc": f"{fresh('domain')} HCA-1",
        "sys/class/infiniband/mlx5_0/node_guid": fresh("guid"),
        f"sys/bus/pci/slots/{fresh('customer')}": Folder(),
        "sys/class/net/refused": UnreadableFile(5, f"{fresh('password')}: Input/output error"),
    }
    return texts


def _calls(fresh: Callable[..., str]) -> dict[tuple[str, ...], tuple[str, ...]]:
    folder = f"/mnt/{fresh('bucket')}"
    records: list[tuple[str, dict[str, object]]] = [
        ("Mount", {"key": folder, "size": 1, "free": 1}),
        ("NotChecked", {"what": "Mount.free", "subject": folder, "reason": "other", "detail": fresh("password")}),
    ]
    serials = ("Serial", {"key": "gpu0", "number": fresh("board serial")})
    gpu = ("Gpu", {"key": "gpu0", "uuid": f"GPU-{fresh('uuid')}", "name": f"NVIDIA H100 80GB HBM3 {fresh('project')}"})
    return {
        ("statvfs", folder): tuple(msgspec.json.encode(one).decode() for one in records),
        ("nvml_serials",): (msgspec.json.encode(serials).decode(), msgspec.json.encode(gpu).decode()),
    }


def _with_secrets(line: str, fresh: Callable[..., str]) -> str:
    """The record with a secret in the text of a NotChecked or an Event."""
    kind, fields = msgspec.json.decode(line)
    if kind in ("NotChecked", "Event"):
        fields["detail" if kind == "NotChecked" else "text"] = f"{fresh()}: {fresh()}"
    return msgspec.json.encode([kind, fields]).decode()
