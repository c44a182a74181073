"""PCI functions from trees of sysfs: whole outputs, and bad content of one file that affects no other function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import HostBridge, Pci
from linkgauge.models.facts.merge import merge
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Observation, Record
from linkgauge.probes.host.entries import Entry, Link
from linkgauge.probes.host.live import Live
from linkgauge.probes.pcie.links import DEVICES, read_pci_links
from linkgauge.probes.pcie.pci import SLOTS, read_pci
from tests.support.nodes.pci_machines import CARD, GPU, NO_NAMES, PORT, Files, identity, machine
from tests.support.nodes.trees import write

FIELDS = {
    "class": "pci_class",
    "vendor": "vendor",
    "device": "device",
    "subsystem_vendor": "subvendor",
    "subsystem_device": "subdevice",
    "numa_node": "numa",
    "label": "label",
    "current_link_speed": "speed",
    "current_link_width": "width",
    "max_link_speed": "max_speed",
    "max_link_width": "max_width",
}


def link(speed: str, width: str, max_speed: str, max_width: str) -> Files:
    values = (f"{speed} GT/s PCIe", width, f"{max_speed} GT/s PCIe", max_width)
    return dict(
        zip(("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"), values, strict=True)
    )


BRIDGE = identity("0x060400", "0x8086", "0x352a")
GEN5 = {"speed": 32e9, "width": 16, "max_speed": 32e9, "max_width": 16, "lost": False}
GEN5_FILES = link("32.0", "16", "32.0", "16")


def fact(folder: str, files: Mapping[str, str], parent: str, **fields: Any) -> Pci:
    """The fact of a function, each field of a file with where it stood."""
    cites = {FIELDS[name]: Evidence(f"{folder}/{name}", text) for name, text in files.items() if name in FIELDS}
    return Pci(key=folder.rpartition("/")[2], parent=parent, cites=cites, **fields)


def bridge(folder: str, files: Files, parent: str, **fields: Any) -> Pci:
    return fact(folder, files, parent, pci_class=0x060400, vendor=0x8086, device=0x352A, **fields)


def gpu(files: Files, **fields: Any) -> Pci:
    return fact(CARD, files, "0000:16:01.0", pci_class=0x030200, vendor=0x10DE, device=0x2330, **fields)


def read(host: Live) -> list[Record]:
    """What both readers say, what they say of one function together, where the first names it."""
    collected = list(read_pci(host))
    collected += [each for each in read_pci_links(host) if each not in collected]
    merged, conflicts = merge(each for each in collected if isinstance(each, Pci))
    assert conflicts == ()
    functions = merged.get(Pci, {})
    first = {each.key: index for index, each in reversed([*enumerate(collected)]) if isinstance(each, Pci)}
    joined = ((index, functions[each.key] if isinstance(each, Pci) else each) for index, each in enumerate(collected))
    return [each for index, each in joined if not isinstance(each, Pci) or first[each.key] == index]


def said(root: Path, entries: Mapping[str, Entry]) -> list[Record]:
    write(root, entries)
    return read(Live(str(root)))


def test_a_gpu_below_a_root_port(tmp_path: Path) -> None:
    port = {**BRIDGE, **GEN5_FILES, "numa_node": "0"}
    files = {
        **GPU,
        **link("2.5", "8", "32.0", "16"),
        "subsystem_vendor": "0x10de",
        "subsystem_device": "0x16c1",
        "numa_node": "-1",
        "label": "GPU 3",
    }
    entries = machine({PORT: port, CARD: files})
    entries[f"{CARD}/driver"] = Link("../../../../bus/pci/drivers/nvidia")
    entries["sys/bus/pci/drivers/nvidia/bind"] = ""
    entries[f"{CARD}/iommu_group"] = Link("../../../../kernel/iommu_groups/42")
    entries["sys/kernel/iommu_groups/42/type"] = "DMA"
    entries[f"{SLOTS}/GPU-3/address"] = "0000:17:00"
    entries[f"{SLOTS}/empty/address"] = "0000:99:00"
    assert said(tmp_path, entries) == [
        bridge(PORT, port, "pci0000:16", numa=0, **GEN5),
        gpu(
            files,
            subvendor=0x10DE,
            subdevice=0x16C1,
            numa=None,
            label="GPU 3",
            speed=2.5e9,
            width=8,
            max_speed=32e9,
            max_width=16,
            driver="nvidia",
            iommu_group=42,
            slot="GPU-3",
            lost=False,
        ),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
    ]


def test_a_switch(tmp_path: Path) -> None:
    """Each function is below the function whose folder contains it."""
    up, down = f"{PORT}/0000:17:00.0", f"{PORT}/0000:17:00.0/0000:18:04.0"
    below = f"{down}/0000:19:00.0"
    files = {**BRIDGE, **GEN5_FILES}
    assert said(tmp_path, machine({PORT: files, up: files, down: files, below: files})) == [
        bridge(PORT, files, "pci0000:16", **GEN5),
        bridge(up, files, "0000:16:01.0", **GEN5),
        bridge(down, files, "0000:17:00.0", **GEN5),
        bridge(below, files, "0000:18:04.0", **GEN5),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
    ]


def test_a_root_behind_a_function(tmp_path: Path) -> None:
    """Intel VMD: its root is in a domain of its own, whose numbers have five digits."""
    vmd = "sys/devices/pci0000:00/0000:00:0e.0"
    port, disk = f"{vmd}/pci10000:00/10000:00:02.0", f"{vmd}/pci10000:00/10000:00:02.0/10000:01:00.0"
    assert said(tmp_path, machine({vmd: BRIDGE, port: BRIDGE, disk: BRIDGE})) == [
        bridge(vmd, BRIDGE, "pci0000:00"),
        bridge(port, BRIDGE, "pci10000:00"),
        bridge(disk, BRIDGE, "10000:00:02.0"),
        HostBridge(key="pci0000:00"),
        HostBridge(key="pci10000:00", parent="0000:00:0e.0"),
        NO_NAMES,
    ]


@pytest.mark.parametrize(("speed", "width"), [("Unknown", "63"), ("Unknown speed", "255")])
def test_a_device_that_answers_no_more(tmp_path: Path, speed: str, width: str) -> None:
    files = {
        **GPU,
        "current_link_speed": speed,
        "current_link_width": width,
        "max_link_speed": "32.0 GT/s PCIe",
        "max_link_width": "16",
    }
    assert said(tmp_path, machine({CARD: files})) == [
        fact(
            CARD,
            files,
            "pci0000:16",
            pci_class=0x030200,
            vendor=0x10DE,
            device=0x2330,
            lost=True,
            max_speed=32e9,
            max_width=16,
        ),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
    ]


def test_a_device_that_sleeps(tmp_path: Path) -> None:
    """Its link is not read, because that would wake the device."""
    files = {**GPU, "power_state": "D3cold", "current_link_speed": "8.0 GT/s PCIe", "current_link_width": "16"}
    why, how = "it sleeps without power (D3cold)", "wake it: use the device"
    assert said(tmp_path, machine({CARD: files})) == [
        NotChecked(what="Pci.link", subject="0000:17:00.0", reason=Reason.AT_REST, detail=why, how=how),
        fact(CARD, GPU, "pci0000:16", pci_class=0x030200, vendor=0x10DE, device=0x2330, lost=False),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
    ]


def test_a_port_with_nothing_below(tmp_path: Path) -> None:
    """It has no trained link. Its maximum is known."""
    built = {**BRIDGE, "max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16"}
    files = {**built, "current_link_speed": "2.5 GT/s PCIe", "current_link_width": "0"}
    assert said(tmp_path, machine({PORT: files})) == [
        bridge(PORT, built, "pci0000:16", max_speed=32e9, max_width=16),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
    ]


def test_a_virtual_function(tmp_path: Path) -> None:
    files = {**GPU, **GEN5_FILES}
    virtual = f"{PORT}/0000:17:00.4"
    entries = machine({PORT: BRIDGE, CARD: files, virtual: GPU})
    entries[f"{virtual}/physfn"] = Link("../0000:17:00.0")
    assert said(tmp_path, entries) == [
        bridge(PORT, BRIDGE, "pci0000:16"),
        gpu(files, **GEN5),
        fact(virtual, GPU, "0000:16:01.0", pci_class=0x030200, vendor=0x10DE, device=0x2330, physfn="0000:17:00.0"),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
    ]


def test_conventional_pci_has_no_link(tmp_path: Path) -> None:
    """There is no link and no gap, because there is nothing to read."""
    isa = "sys/devices/pci0000:00/0000:00:1f.0"
    assert said(tmp_path, machine({isa: BRIDGE})) == [
        bridge(isa, BRIDGE, "pci0000:00"),
        HostBridge(key="pci0000:00"),
        NO_NAMES,
    ]


@pytest.mark.parametrize(("port", "missed"), [(BRIDGE, ["0000:17:00.0"]), ({**BRIDGE, **GEN5_FILES}, [])])
def test_a_nic_without_link_attributes(tmp_path: Path, port: Files, missed: list[str]) -> None:
    """If other functions have them, it is a conventional PCI card. Otherwise its link was not read."""
    nic = identity("0x0c0600", "0x15b3", "0x5a44")
    lost = [one for one in said(tmp_path, machine({PORT: port, CARD: nic})) if isinstance(one, NotChecked)]
    assert [one.subject for one in lost if one.what == "Pci.width"] == missed


def test_a_link_attribute_that_is_missing_beside_others(tmp_path: Path) -> None:
    files = {**GPU, **GEN5_FILES}
    del files["max_link_width"], files["current_link_speed"]

    def missed(field: str, name: str) -> NotChecked:
        why = f"{name} is not there, though other link attributes are"
        return NotChecked(what=f"Pci.{field}", subject="0000:17:00.0", reason=Reason.NOT_INSTALLED, detail=why)

    assert said(tmp_path, machine({PORT: BRIDGE, CARD: files})) == [
        bridge(PORT, BRIDGE, "pci0000:16"),
        missed("max_width", "max_link_width"),
        gpu(files, width=16, max_speed=32e9),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
        missed("speed", "current_link_speed"),
    ]


UEVENT = "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\nPCI_SUBSYS_ID=10DE:16C1\nPCI_SLOT_NAME=0000:17:00.0"


def test_one_file_says_what_a_function_is(tmp_path: Path) -> None:
    """Five numbers of which none is read again."""
    names = ("pci_class", "vendor", "device", "subvendor", "subdevice")
    cites = dict.fromkeys(names, Evidence(f"{CARD}/uevent", "PCI_CLASS=30200 PCI_ID=10DE:2330 PCI_SUBSYS_ID=10DE:16C1"))
    assert said(tmp_path, machine({PORT: BRIDGE, CARD: {"uevent": UEVENT, "class": "0x020000"}}))[1:] == [
        NotChecked(
            what="Pci.width",
            subject="0000:17:00.0",
            reason=Reason.NOT_SUPPORTED,
            detail="the kernel shows no link attributes",
            how="Linux 4.13 or later, with all of sysfs",
        ),
        Pci(
            key="0000:17:00.0",
            parent="0000:16:01.0",
            pci_class=0x030200,
            vendor=0x10DE,
            device=0x2330,
            subvendor=0x10DE,
            subdevice=0x16C1,
            cites=cites,
        ),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
    ]


@pytest.mark.parametrize("text", ["", "DRIVER=nvidia", UEVENT.replace("30200", "VGA"), UEVENT.replace("PCI_ID", "ID")])
def test_a_uevent_that_does_not_say_it_is_passed_over(tmp_path: Path, text: str) -> None:
    files = {**GPU, **GEN5_FILES}
    assert said(tmp_path, machine({PORT: BRIDGE, CARD: {**files, "uevent": text}}))[1:] == [
        gpu(files, **GEN5),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
    ]


AER = {
    "aer_dev_correctable": "RxErr 3\nBadTLP 0\nTimeout 4\nTOTAL_ERR_COR 7",
    "aer_dev_nonfatal": "Undefined 0\nUnsupReq 12\nTOTAL_ERR_NONFATAL 12",
    "aer_dev_fatal": "DLP 1\nUnsupReq 1\nTOTAL_ERR_FATAL 2",
}


def test_counters_of_errors(tmp_path: Path) -> None:
    """Totals count nothing twice, and looking for devices that are not there is no error."""
    files = {**BRIDGE, **GEN5_FILES}
    *others, correctable, nonfatal, fatal = said(tmp_path, machine({PORT: {**files, **AER}, CARD: GPU}))
    assert others[0] == bridge(PORT, files, "pci0000:16", **GEN5)
    for seen, severity, value, text in (
        (correctable, "correctable", 7, "RxErr 3, Timeout 4"),
        (nonfatal, "nonfatal", 0, "no errors"),
        (fatal, "fatal", 1, "DLP 1"),
    ):
        assert isinstance(seen, Observation)
        assert seen == Observation(
            about="0000:16:01.0",
            quantity=f"aer_{severity}",
            unit="count",
            value=value,
            at=seen.at,
            evidence=Evidence(f"{PORT}/aer_dev_{severity}", text),
        )


@pytest.mark.parametrize("text", ["RxErr", "RxErr x", "RxErr -1", "\nRxErr 1", "7"])
def test_counters_that_make_no_sense(tmp_path: Path, text: str) -> None:
    why = f"{PORT}/aer_dev_correctable does not hold a name and a number a line"
    files = {**BRIDGE, **GEN5_FILES}
    assert said(tmp_path, machine({PORT: {**files, "aer_dev_correctable": text}, CARD: files})) == [
        bridge(PORT, files, "pci0000:16", **GEN5),
        bridge(CARD, files, "0000:16:01.0", **GEN5),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
        NotChecked(what="Pci.aer_correctable", subject="0000:16:01.0", reason=Reason.UNREADABLE, detail=why),
    ]


def test_what_would_not_say_hides_nothing_else(tmp_path: Path) -> None:
    """Folders in the place of files, loops in the place of links, rubbish, and a device that cannot be found."""
    files = {"class": "3D", "vendor/below": "", "device": "0x2330", "aer_dev_fatal/below": "", **GEN5_FILES}
    entries = machine({PORT: BRIDGE, CARD: files})
    entries[f"{CARD}/iommu_group"] = Link("../0000:17:00.0")
    entries[f"{CARD}/driver"] = Link("driver")
    entries[f"{DEVICES}/0000:99:00.0"] = Link("0000:99:00.0")
    entries[f"{DEVICES}/rubbish"] = ""
    entries[f"{SLOTS}/1/address/below"] = ""
    entries[f"{SLOTS}/2/address"] = "0000:17:00"

    def missed(what: str, path: str, detail: str, subject: str = "0000:17:00.0") -> NotChecked:
        return NotChecked(what=what, subject=subject, reason=Reason.UNREADABLE, path=path, detail=detail)

    assert said(tmp_path, entries) == [
        missed("Pci", f"{DEVICES}/0000:99:00.0", "Too many levels of symbolic links", "0000:99:00.0"),
        bridge(PORT, BRIDGE, "pci0000:16"),
        missed("Pci.pci_class", f"{CARD}/class", "'3D' is not a hexadecimal number"),
        missed("Pci.vendor", f"{CARD}/vendor", "Is a directory"),
        missed("Pci.driver", f"{CARD}/driver", "Too many levels of symbolic links"),
        missed("Pci.iommu_group", f"{CARD}/iommu_group", "'0000:17:00.0' is not a number"),
        fact(CARD, {"device": "0x2330", **GEN5_FILES}, "0000:16:01.0", device=0x2330, slot="2", **GEN5),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
        missed("Pci.aer_fatal", f"{CARD}/aer_dev_fatal", "Is a directory"),
    ]


def test_what_every_function_has_is_missed(tmp_path: Path) -> None:
    entries: dict[str, Entry] = {f"{DEVICES}/0000:17:00.0": Link("../../../devices/none")}
    folder = f"{DEVICES}/0000:17:00.0"
    assert said(tmp_path, entries) == [
        *(
            NotChecked(
                what=f"Pci.{field}",
                subject="0000:17:00.0",
                reason=Reason.NOT_INSTALLED,
                detail=f"{folder}/{name} is not there",
            )
            for name, field in (("class", "pci_class"), ("vendor", "vendor"), ("device", "device"))
        ),
        Pci(key="0000:17:00.0"),
        NO_NAMES,
    ]


def test_a_machine_without_pci(tmp_path: Path) -> None:
    """Without a PCI function the verdict must not be ok: /sys may not be mounted."""
    (missing,) = said(tmp_path, {})
    assert isinstance(missing, NotChecked)
    assert (missing.what, missing.subject, missing.reason) == ("Pci", "node", Reason.NOT_INSTALLED)
    (tmp_path / "sys").symlink_to("sys")
    assert read(Live(str(tmp_path))) == [
        NotChecked(
            what="Pci",
            subject="node",
            reason=Reason.UNREADABLE,
            path=DEVICES,
            detail="Too many levels of symbolic links",
        )
    ]


texts = (
    st.sampled_from(["", "0x10de", "-1", "16", "63", "Unknown", "32.0 GT/s PCIe", "RxErr 99999999999999999999\na 7"])
    | st.text(max_size=40)
    | st.text("0x1 .\nGTs/Unkow63255-", max_size=20)
)


@given(st.dictionaries(st.sampled_from([*FIELDS, *AER]), texts))
def test_any_text_in_any_file_of_one_function_harms_no_other(files: dict[str, str]) -> None:
    port = {**BRIDGE, **GEN5_FILES}
    with TemporaryDirectory() as root:
        told = said(Path(root), machine({PORT: port, CARD: files, f"{PORT}/0000:17:00.1": GPU}))
    about = [
        one.key if isinstance(one, Pci) else getattr(one, "subject", "") or getattr(one, "about", "") for one in told
    ]
    assert about.count("0000:17:00.0") >= 1
    assert [one for one, key in zip(told, about, strict=True) if key != "0000:17:00.0"] == [
        bridge(PORT, port, "pci0000:16", **GEN5),
        fact(f"{PORT}/0000:17:00.1", GPU, "0000:16:01.0", pci_class=0x030200, vendor=0x10DE, device=0x2330),
        HostBridge(key="pci0000:16"),
        NO_NAMES,
    ]
    for one in told:
        assert decode(encode(one)) == one
