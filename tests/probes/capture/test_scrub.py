from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from linkgauge.probes.capture.anonymize import scrub
from linkgauge.probes.host.entries import Entry, Link, UnreadableFile
from linkgauge.probes.host.recorded import dump, parse
from tests.support.nodes.trees import tree

NIC = "sys/devices/pci0000:50/0000:53:00.0"
MOUNTS = """\
/dev/nvme0n1p2 / ext4 rw 0 0
nas01.example.com:/vol/projects /home nfs4 rw,addr=10.20.0.5 0 0
//files/Alice$ /mnt/files cifs rw 0 0
10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch /scratch lustre rw 0 0"""
LOG = """\
6,1,0,-;Command line: UUID=0a1b2c3d-1111-2222-3333-444455556666 10.1.2.3::10.1.2.1:255.255.255.0:gpu07:eth0
6,2,1,-;mlx5_core 0000:53:00.0: firmware version: 28.39.10.2
6,3,2,-;usb 1-1: SerialNumber: 0123ABCD
3,4,3,-;nfs: server nas01.example.com not responding
6,5,4,-;eth0: link with b8:ce:f6:12:34:56 up, fe80::bace:f6ff:fe12:3456, ::1, 127.0.0.1
4,6,5,-;NVRM: GPU at PCI:0000:53:00: GPU-12345678-9abc-def0-1234-56789abcdef0
4,7,6,-;NVRM: Xid (PCI:0000:53:00): 31, pid=4711, name=secret project, Ch 00000008
4,8,7,-;NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."""
OWNED: dict[str, Entry] = {
    "proc/sys/kernel/hostname": "gpu07.example.com",
    "proc/self/mounts": MOUNTS,
    "dev/kmsg": LOG,
    "home/alice/run.sh": "mpirun -H gpu07,gpu070 /home/alice/train --nas nas01.example.com:/vol/projects",
    f"{NIC}/device": "0x1021",
    f"{NIC}/vendor": "0x15b3",
    f"{NIC}/resource": "0x0000000091000000 0x0000000091ffffff 0x0000000000040200",
    f"{NIC}/local_cpus": "00000000,ffffffff,00000000,ffffffff",
    f"{NIC}/infiniband/mlx5_0/fw_ver": "28.39.10.2",
    f"{NIC}/infiniband/mlx5_0/node_guid": "b8ce:f603:0012:3456",
    f"{NIC}/infiniband/mlx5_0/ports/1/gids/0": "fe80:0000:0000:0000:b8ce:f603:0012:3456",
    f"{NIC}/infiniband/mlx5_0/ports/1/gids/1": "0000:0000:0000:0000:0000:ffff:0a01:0203",
    f"{NIC}/infiniband/mlx5_0/ports/1/gids/2": "0000:0000:0000:0000:0000:0000:0000:0000",
    f"{NIC}/net/enxb8cef6123456/address": "b8:ce:f6:12:34:56",
    f"{NIC}/net/enxb8cef6123456/broadcast": "ff:ff:ff:ff:ff:ff",
    f"{NIC}/net/ib0/address": "00:00:10:49:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:12:34:56",
    "sys/class/net/enxb8cef6123456": Link(f"../../../{NIC}/net/enxb8cef6123456"),
    "sys/class/nvme/nvme0/serial": "S4YNNG0R500123",
    "sys/class/nvme/nvme0/subsysnqn": "nqn.1994-11.com.samsung:nvme:PM1733:2.5-inch:S4YNNG0R500123",
    "sys/class/nvme/nvme1/subsysnqn": "nqn.2014-08.org.nvmexpress:uuid:4c4c4544-0042-3510-8053-b4c04f4b5933",
    "sys/class/nvme/nvme1/wwid": "eui.002538b111b2c3d4",
    "sys/class/nvme/nvme1/shut": UnreadableFile(5, "S4YNNG0R500123 does not answer"),
    "sys/block/md0/md/uuid": "0a1b2c3d:11112222:33334444:55556666",
    "sys/class/dmi/id/product_serial": "Not Specified",
    "sys/class/dmi/id/bios_version": "1.2.3.4",
}
CALLS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("ethtool", "enxb8cef6123456"): ('["Net",{"key":"enxb8cef6123456","max_speed":50000000000.0}]',),
    ("statvfs", "/home/alice"): ('["Mount",{"key":"/home/alice","size":1}]', '["Mount",{"key":"/","size":2}]'),
}
NOBODYS_MOUNTS = """\
/dev/nvme0n1p2 / ext4 rw 0 0
some-server-1:/some-export-1 /home nfs4 rw 0 0
//some-server-2/some-export-2 /mnt/some-word-1 cifs rw 0 0
198.18.0.3@o2ib:198.18.0.4@o2ib:/some-export-3 /scratch lustre rw 0 0"""
NOBODYS_LOG = """\
6,1,0,-;Command line: UUID=00000000-0000-4000-8000-000000000001 198.18.0.1::198.18.0.2:255.255.255.0:some-node-1:eth0
6,2,1,-;mlx5_core 0000:53:00.0: firmware version: 28.39.10.2
6,3,2,-;usb 1-1: SerialNumber: SERIAL0001
3,4,3,-;nfs: server some-server-1 not responding
6,5,4,-;eth0: link with 02:00:00:00:00:01 up, fe80::200:ff:fe00:1, ::1, 127.0.0.1
4,6,5,-;NVRM: GPU at PCI:0000:53:00: GPU-00000000-0000-4000-8000-000000000002
4,7,6,-;NVRM: Xid (PCI:0000:53:00): 31, pid=4711, name=some-program-1, Ch 00000008
4,8,7,-;NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."""
NOBODYS: dict[str, Entry] = {
    "proc/sys/kernel/hostname": "some-node-1",
    "proc/self/mounts": NOBODYS_MOUNTS,
    "dev/kmsg": NOBODYS_LOG,
    "home/some-user-1/run.sh": (
        "mpirun -H some-node-1,gpu070 /home/some-user-1/train --nas some-server-1:/some-export-1"
    ),
    f"{NIC}/device": "0x1021",
    f"{NIC}/vendor": "0x15b3",
    f"{NIC}/resource": "0x0000000091000000 0x0000000091ffffff 0x0000000000040200",
    f"{NIC}/local_cpus": "00000000,ffffffff,00000000,ffffffff",
    f"{NIC}/infiniband/mlx5_0/fw_ver": "28.39.10.2",
    f"{NIC}/infiniband/mlx5_0/node_guid": "0200:00ff:fe00:0003",
    f"{NIC}/infiniband/mlx5_0/ports/1/gids/0": "fe80:0000:0000:0000:0200:00ff:fe00:0003",
    f"{NIC}/infiniband/mlx5_0/ports/1/gids/1": "0000:0000:0000:0000:0000:ffff:c612:0001",
    f"{NIC}/infiniband/mlx5_0/ports/1/gids/2": "0000:0000:0000:0000:0000:0000:0000:0000",
    f"{NIC}/net/enx020000000001/address": "02:00:00:00:00:01",
    f"{NIC}/net/enx020000000001/broadcast": "ff:ff:ff:ff:ff:ff",
    f"{NIC}/net/ib0/address": "00:00:10:49:fe:80:00:00:00:00:00:00:02:00:00:ff:fe:00:00:03",
    "sys/class/net/enx020000000001": Link(f"../../../{NIC}/net/enx020000000001"),
    "sys/class/nvme/nvme0/serial": "SERIAL00000002",
    "sys/class/nvme/nvme0/subsysnqn": "nqn.1994-11.com.samsung:nvme:PM1733:2.5-inch:SERIAL00000002",
    "sys/class/nvme/nvme1/subsysnqn": "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000003",
    "sys/class/nvme/nvme1/wwid": "eui.020000fffe000002",
    "sys/class/nvme/nvme1/shut": UnreadableFile(5, "SERIAL00000002 does not answer"),
    "sys/block/md0/md/uuid": "00000000:00004000:80000000:00000001",
    "sys/class/dmi/id/product_serial": "Not Specified",
    "sys/class/dmi/id/bios_version": "1.2.3.4",
}


def test_an_owned_machine_becomes_nobody_s() -> None:
    assert scrub(tree(OWNED, CALLS)) == tree(
        NOBODYS,
        {
            ("ethtool", "enx020000000001"): ('["Net",{"key":"enx020000000001","max_speed":50000000000.0}]',),
            ("statvfs", "/home/some-user-1"): (
                '["Mount",{"key":"/home/some-user-1","size":1}]',
                '["Mount",{"key":"/","size":2}]',
            ),
        },
    )


@pytest.mark.parametrize(
    "text",
    [
        "0000:53:00.0",
        "0000:50:01.0>0000:53:00.0",
        "10000:e1:00.0",
        "10de:2330",
        "0x15b3",
        "1:0:0:0",
        "2026-11-21",
        "12:34:56",
        "28.39.1002",
        "535.104.05",
        "127.0.0.1",
        "0.0.0.0:2024",
        "255.255.255.0",
        "::1",
        "v1.2.3.4",
        "00:00:00:00:00:00",
        "ff:ff:ff:ff:ff:ff",
        "fe80:0000:0000:0000:0000:0000:0000:0000",
        "0-15,32-47",
        "ffffffff,00000000",
        "std::list",
        "nqn.2014-08.org.nvmexpress.discovery",
        "8.0 GT/s PCIe",
        "18446744073709551615",
        "0xffffffffffffffff",
        "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00",
        "Serial: 8250/16550 driver, 32 ports",
        "GH100 [H100 SXM5 80GB]",
        "enx",
        "enp1s0f0np0",
        "ibp26s0",
        "/home",
        "firmware 1.2.3.4",
        "1.2.3.4.5",
    ],
)
def test_what_only_looks_like_an_identity_stays(text: str) -> None:
    machine = tree({"sys/a": text, f"sys/{text.replace('/', ' ')}": "b", "dev/kmsg": f"6,1,1,-;x: {text}, y ({text})"})
    assert scrub(machine) == machine


def test_a_host_called_like_a_part_of_every_machine_renames_no_part() -> None:
    scrubbed = scrub(tree({"proc/sys/kernel/hostname": "nvidia", "sys/bus/pci/drivers/nvidia/x": "nvidia 535"}))
    assert scrubbed == tree({"proc/sys/kernel/hostname": "some-node-1", "sys/bus/pci/drivers/nvidia/x": "nvidia 535"})


def test_stand_ins_that_are_there_already_are_not_given_to_others() -> None:
    scrubbed = scrub(tree({"a": "02:00:00:00:00:01 198.18.0.1", "b": "b8:ce:f6:12:34:56 10.1.2.3 02:00:00:00:00:01"}))
    assert scrubbed == tree(
        {"a": "02:00:00:00:00:01 198.18.0.1", "b": "02:00:00:00:00:02 198.18.0.2 02:00:00:00:00:01"}
    )


def hexadecimal(*groups: int) -> st.SearchStrategy[list[str]]:
    digits = st.tuples(*(st.text("0123456789abcdef", min_size=size, max_size=size) for size in groups))
    return digits.map(list)


macs = hexadecimal(2, 2, 2, 2, 2, 2).map(":".join)
guids = hexadecimal(4, 4, 4, 4).map(":".join)
uuids = hexadecimal(8, 4, 4, 4, 12).map("-".join)
secrets = st.one_of(macs, guids, uuids, macs.map(str.upper), uuids.map(str.upper))
between = st.text(" ,;()[]<>=|\"'\n_é", max_size=3)
words = st.sampled_from(
    ["", "0000:53:00.0", "GPU-", "uuid:", "x ", "10de:2330 ", "12:34:56 ", "eth0: ", "0x15b3,", "MAC="]
)
NOT_OURS = re.compile(r"(?i)(?!02:00:00|0200:00ff:fe|00000000-0000-4000-8000)(?!(?:00|ff|[:-])*$)(?!fe80:0000:0000)")


@given(secrets, st.lists(st.tuples(words, between), min_size=5, max_size=5), between)
def test_no_secret_survives_wherever_it_was(secret: str, before: list[tuple[str, str]], after: str) -> None:
    assume(NOT_OURS.match(secret))
    where = [f"{word}{space or ' '}{secret}{after or ' '}" for word, space in before]
    line = msgspec.json.encode(["NotChecked", {"what": "a", "subject": where[4], "why": secret}]).decode()
    machine = tree(
        {
            f"sys/a{where[0]}": where[1],
            "sys/b": Link(where[2]),
            "sys/c": UnreadableFile(5, where[3]),
            "sys/d": "\n".join(where),
        },
        {("ethtool", where[4]): (line,)},
    )
    scrubbed = scrub(machine)
    assert secret not in dump(scrubbed)
    assert scrub(scrubbed) == scrubbed
    assert len(scrubbed.entries) == len(machine.entries)


@given(st.text(), st.lists(st.text("0123456789abcdef:.-/ enx\n", max_size=40), min_size=2, max_size=2))
@example("0: anx;", ["", "0: anx"])
@example("", ["", "0\n0b0n::"])  # "some-word-1::" is no address
def test_scrubbing_twice_is_scrubbing_once(text: str, shapes: list[str]) -> None:
    name = "".join(letter for letter in text if letter not in "/.") or "a"
    machine = tree(
        {
            f"sys/{name}": shapes[0],
            "proc/sys/kernel/hostname": text,
            "proc/mounts": "\n".join(shapes),
            "sys/nvme0/serial": shapes[1],
            "sys/nvme0/subsysnqn": f"nqn:{text}",
        }
    )
    scrubbed = scrub(machine)
    assert scrub(scrubbed) == scrubbed
    assert parse(dump(scrubbed)) == scrubbed
