"""`nvidia-smi -q` as text and XML, of old and new drivers: whole, in part, cut, and of rubbish."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.nvidia import smi_query
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared"
AT = 1795230000.0
Tree: TypeAlias = Mapping[str, "Tree | str"]

REASONS = {
    "Idle": "Not Active",
    "Applications Clocks Setting": "Not Active",
    "SW Power Cap": "Active",
    "HW Slowdown": {"": "Active", "HW Thermal Slowdown": "Active", "HW Power Brake Slowdown": "Not Active"},
    "Sync Boost": "Not Active",
    "SW Thermal Slowdown": "Not Active",
    "Display Clock Setting": "Not Active",
}
ERRORS = {
    "Volatile": {
        "SRAM Correctable": "1",
        "SRAM Uncorrectable Parity": "2",
        "SRAM Uncorrectable SEC-DED": "3",
        "DRAM Correctable": "40",
        "DRAM Uncorrectable": "50",
    },
    "Aggregate": {
        "SRAM Correctable": "6",
        "SRAM Uncorrectable Parity": "7",
        "SRAM Uncorrectable SEC-DED": "8",
        "DRAM Correctable": "90",
        "DRAM Uncorrectable": "100",
        "SRAM Threshold Exceeded": "Yes",
    },
}
NEW: dict[str, Any] = {
    "Product Name": "NVIDIA H100 80GB HBM3",
    "Persistence Mode": "Enabled",
    "MIG Mode": {"Current": "Disabled", "Pending": "Enabled"},
    "GPU UUID": "GPU-11111111-2222-3333-4444-555555555555",
    "VBIOS Version": "96.00.A5.00.01",
    "Board Part Number": "692-2G520-0200-000",
    "Platform Info": {"Module Id": "7"},
    "GPU Virtualization Mode": {"Virtualization Mode": "Pass-Through"},
    "GPU Recovery Action": "Drain and Reset",
    "PCI": {
        "Bus Id": "00000000:53:00.0",
        "GPU Link Info": {
            "PCIe Generation": {"Max": "5", "Current": "3", "Device Max": "5", "Host Max": "N/A"},
            "Link Width": {"Max": "16x", "Current": "8x"},
        },
        "Replays Since Reset": "9",
    },
    "Performance State": "P2",
    "Clocks Event Reasons": REASONS,
    "FB Memory Usage": {"Total": "81559 MiB", "Used": "19818 MiB"},
    "BAR1 Memory Usage": {"Total": "131072 MiB", "Used": "1 MiB"},
    "Compute Mode": "Exclusive_Process",
    "ECC Mode": {"Current": "Enabled", "Pending": "Disabled"},
    "ECC Errors": ERRORS,
    "Retired Pages": {"Pending Page Blacklist": "N/A"},
    "Remapped Rows": {
        "Correctable Error": "4",
        "Uncorrectable Error": "1",
        "Pending": "Yes",
        "Remapping Failure Occurred": "No",
    },
    "Temperature": {"GPU Current Temp": "59 C"},
    "GPU Power Readings": {
        "Average Power Draw": "629.45 W",
        "Instantaneous Power Draw": "588.39 W",
        "Current Power Limit": "600.00 W",
        "Default Power Limit": "700.00 W",
    },
    "Module Power Readings": {"Current Power Limit": "1.00 W"},
    "Clocks": {"Graphics": "1980 MHz", "SM": "1970 MHz", "Memory": "2619 MHz"},
    "Applications Clocks": {"Graphics": "1500 MHz", "Memory": "2619 MHz"},
    "Default Applications Clocks": {"Graphics": "Requested functionality has been deprecated"},
    "Max Clocks": {"Graphics": "1980 MHz", "SM": "1980 MHz", "Memory": "2620 MHz"},
    "Fabric": {
        "State": "Completed",
        "Status": "Success",
        "CliqueId": "5",
        "ClusterUUID": "99999999-2222-3333-4444-555555555555",
        "Health": {"Bandwidth": "Degraded", "Route Unhealthy": "False", "Incorrect Configuration": "None"},
    },
    "Processes": {"Process ID": {"": "1", "Type": "C"}, "Process ID ": {"": "2", "Type": "G"}},
}
READ: dict[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-11111111-2222-3333-4444-555555555555",
    "address": "0000:53:00.0",
    "board_part": "692-2G520-0200-000",
    "module_id": 7,
    "vbios": "96.00.A5.00.01",
    "recovery": "drain and reset",
    "virtualization": "passthrough",
    "pcie_speed": 8e9,
    "pcie_width": 8,
    "pcie_max_speed": 32e9,
    "pcie_max_width": 16,
    "pcie_own_max_speed": 32e9,
    "performance_state": 2,
    "clock": 1.97e9,
    "clock_max": 1.98e9,
    "memory_clock": 2.619e9,
    "memory_clock_max": 2.62e9,
    "application_clock": 1.5e9,
    "clock_reasons": ("software power cap", "hardware slowdown", "hardware thermal slowdown"),
    "power": 588.39,
    "power_limit": 600.0,
    "power_limit_default": 700.0,
    "temperature": 59.0,
    "memory": 81559 << 20,
    "memory_used": 19818 << 20,
    "bar1": 131072 << 20,
    "ecc": True,
    "ecc_pending": False,
    "ecc_corrected": 41,
    "ecc_uncorrected": 55,
    "ecc_corrected_lifetime": 96,
    "ecc_uncorrected_lifetime": 115,
    "sram_threshold": True,
    "remapped_correctable": 4,
    "remapped_uncorrectable": 1,
    "remap_pending": True,
    "remap_failed": False,
    "fabric_state": "completed",
    "fabric_status": "Success",
    "fabric_clique": 5,
    "fabric_cluster": "99999999-2222-3333-4444-555555555555",
    "fabric_faults": ("degraded bandwidth",),
    "mig": False,
    "mig_instances": 0,
    "persistence": True,
    "compute_mode": "exclusive process",
    "processes": 1,
}
OLD: dict[str, Any] = {  # before Turing, driver 390
    "Product Name": "Tesla V100-SXM2-32GB",
    "GPU Reset Status": {"Reset Required": "Yes", "Drain and Reset Recommended": "No"},
    "PCI": {
        "GPU Link Info": {"PCIe Generation": {"Max": "3", "Current": "1"}, "Link Width": {"Current": "16x"}},
        "Replays since reset": "0",
    },
    "Clocks Throttle Reasons": REASONS,
    "Ecc Mode": {"Current": "Enabled", "Pending": "Enabled"},
    "ECC Errors": {
        "Volatile": {
            "Single Bit": {"Device Memory": "3", "L2 Cache": "1", "Total": "4"},
            "Double Bit": {"Device Memory": "0", "Total": "0"},
        },
        "Aggregate": {"Single Bit": {"Total": "7"}, "Double Bit": {"Total": "1"}},
    },
    "Retired Pages": {"Single Bit ECC": "0", "Double Bit ECC": "1", "Pending": "Yes"},
    "Power Readings": {
        "Power Draw": "41.00 W",
        "Power Limit": "300.00 W",
        "Default Power Limit": "300.00 W",
        "Enforced Power Limit": "250.00 W",
    },
    "Processes": "None",
}
READ_OLD: dict[str, Any] = {
    "name": "Tesla V100-SXM2-32GB",
    "address": "0000:54:00.0",
    "recovery": "GPU reset",
    "pcie_speed": 2.5e9,
    "pcie_max_speed": 8e9,
    "pcie_width": 16,
    "clock_reasons": READ["clock_reasons"],
    "power": 41.0,
    "power_limit": 250.0,
    "power_limit_default": 300.0,
    "ecc": True,
    "ecc_pending": True,
    "ecc_corrected": 4,
    "ecc_uncorrected": 0,
    "ecc_corrected_lifetime": 7,
    "ecc_uncorrected_lifetime": 1,
    "remap_pending": True,
    "processes": 0,
}


def block(tree: Tree, depth: int = 1, width: int = 50) -> Iterator[str]:
    """The lines of what stands below a heading; a heading with a value of its own has it under ""."""
    for name, below in tree.items():
        indent = " " * 4 * depth
        if isinstance(below, str):
            yield f"{indent}{name:{width - 4 * depth}} : {below}"
            continue
        own = below.get("")
        yield f"{indent}{name.strip()}" + (f"{'':{width - 4 * depth - len(name.strip())}} : {own}" if own else "")
        yield from block({name: below for name, below in below.items() if name}, depth + 1, width)


def printed(*gpus: tuple[str, Tree], attached: int | None = None) -> str:
    """An output of the tool."""
    lines = ["", "==============NVSMI LOG==============", ""]
    lines += block({"Timestamp": "Tue Jul 14 08:12:53 2026", "Driver Version": "590.48.01", "CUDA Version": "13.1"}, 0)
    lines += ["", f"{'Attached GPUs':50} : {len(gpus) if attached is None else attached}"]
    for bus, tree in gpus:
        lines += [f"GPU 00000000:{bus}", *block(tree), ""]
    return "\n".join(lines) + "\n"


def said(text: str) -> list[Record]:
    return list(smi_query.read(Part("q.txt", 1, text, AT)))


def values(fact: Fact) -> dict[str, Any]:
    """What a fact says, without where it stood."""
    names = (field.name for field in fields(fact) if field.name != "cites")
    return {name: value for name in names if (value := getattr(fact, name)) is not None}


def gpus(said: list[Record]) -> list[dict[str, Any]]:
    return [values(one) for one in said if isinstance(one, Gpu)]


def counts(said: list[Record]) -> dict[tuple[str, str], float]:
    return {(str(one.about), one.quantity): one.value for one in said if isinstance(one, Observation)}


TWO = printed(("53:00.0", NEW), ("54:00.0", OLD))


def test_all_that_is_read() -> None:
    """Two GPUs of drivers new and old; nothing but what is expected."""
    found = said(TWO)
    assert recognise(TWO)
    driver = {"key": "nvidia", "version": "590.48.01", "library": "590.48.01", "cuda": "13.1", "gpus": 2}
    assert [values(one) for one in found if isinstance(one, Driver)] == [driver]
    assert gpus(found) == [{"key": "gpu0", **READ}, {"key": "gpu1", **READ_OLD}]
    assert counts(found) == {
        ("gpu0", "ecc_corrected"): 41,
        ("gpu0", "ecc_uncorrected"): 55,
        ("gpu0", "pcie_replay"): 9,
        ("gpu1", "ecc_corrected"): 4,
        ("gpu1", "ecc_uncorrected"): 0,
        ("gpu1", "pcie_replay"): 0,
    }
    assert not [one for one in found if isinstance(one, NotChecked)]


def test_each_value_says_where_it_stood() -> None:
    lines = TWO.splitlines()
    first = next(one for one in said(TWO) if isinstance(one, Gpu))
    assert first.cites["power"] == Evidence(
        f"q.txt:{next(n for n, line in enumerate(lines, 1) if '588.39' in line)}",
        next(line.strip() for line in lines if "588.39" in line),
    )
    assert set(first.cites) == set(READ) - {"processes", "mig_instances"}


def tags(tree: Tree, names: Mapping[str, str], depth: int = 1) -> Iterator[str]:
    for name, below in tree.items():
        tag = names.get(name.strip(), re.sub(r"[^a-z0-9]+", "_", name.strip().lower()))
        if isinstance(below, str):
            yield f"{'  ' * depth}<{tag}>{below}</{tag}>"
        else:
            yield f"{'  ' * depth}<{tag}>"
            yield from tags(below, names, depth + 1)
            yield f"{'  ' * depth}</{tag}>"


def test_xml() -> None:
    """The same of XML, whose tags are other words."""
    tree: Tree = {
        "product_name": "NVIDIA A100 &amp; more",
        "mig_mode": {"current_mig": "Enabled"},
        "mig_devices": {
            "mig_device": {"index": "0", "fb_memory_usage": {"total": "19968 MiB"}},
            "mig_device ": {"fb_memory_usage": {"total": "19968 MiB"}},
        },
        "gpu_module_id": "4",
        "gpu_reset_status": {"reset_required": "Yes", "drain_and_reset_recommended": "No"},
        "pci": {
            "pci_gpu_link_info": {
                "pcie_gen": {"max_link_gen": "4", "current_link_gen": "4"},
                "link_widths": {"max_link_width": "16x", "current_link_width": "16x"},
            },
            "replay_counter": "2",
        },
        "fb_memory_usage": {"total": "81920 MiB", "used": "50 MiB"},
        "ecc_errors": {
            "volatile": {
                "sram_correctable": "0",
                "sram_uncorrectable": "1",
                "dram_correctable": "2",
                "dram_uncorrectable": "3",
            }
        },
        "remapped_rows": "N/A",
        "gpu_power_readings": {"power_draw": "67.03 W", "current_power_limit": "400.00 W"},
        "processes": {"process_info": {"pid": "7", "type": "C"}, "process_info ": {"pid": "8", "type": "C+G"}},
    }
    text = "\n".join(
        [
            "<nvidia_smi_log>",
            "  <driver_version>535.54.03</driver_version>",
            "  <attached_gpus>1</attached_gpus>",
            '  <gpu id="00000000:01:00.0">',
            *tags(tree, {}, 2),
            "  </gpu>",
            "</nvidia_smi_log>",
        ]
    )
    assert recognise('<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n' + text)
    driver = {"key": "nvidia", "version": "535.54.03", "library": "535.54.03", "gpus": 1}
    assert [values(one) for one in said(text) if isinstance(one, Driver)] == [driver]
    assert gpus(said(text)) == [
        {
            "key": "gpu0",
            "name": "NVIDIA A100 & more",
            "address": "0000:01:00.0",
            "module_id": 4,
            "recovery": "GPU reset",
            "pcie_speed": 16e9,
            "pcie_width": 16,
            "pcie_max_speed": 16e9,
            "pcie_max_width": 16,
            "power": 67.03,
            "power_limit": 400.0,
            "memory": 81920 << 20,
            "memory_used": 50 << 20,
            "ecc_corrected": 2,
            "ecc_uncorrected": 4,
            "mig": True,
            "mig_instances": 2,
            "processes": 2,
        }
    ]


def test_one_gpu_of_several_has_no_number() -> None:
    """`-i`, or a text that was cut: which of the GPUs it is, nobody says."""
    (gpu,) = gpus(said(printed(("54:00.0", OLD), attached=8)))
    assert gpu == {"key": "0000:54:00.0", **READ_OLD}


def test_a_section_alone() -> None:
    """Pasted without the GPU that it belongs to."""
    text = "    Fabric\n        State        : In Progress\n        Status       : N/A\n"
    assert recognise(text)
    assert gpus(said(text)) == [{"key": "gpu", "fabric_state": "in progress"}]


def test_the_status_of_a_fabric_may_be_an_unknown_error() -> None:
    text = "    Fabric\n        State        : Completed\n        Status       : Unknown Error\n"
    assert gpus(said(text)) == [{"key": "gpu", "fabric_state": "completed", "fabric_status": "Unknown Error"}]


def test_the_health_of_a_fabric_may_be_one_line() -> None:
    text = "    Fabric\n        State        : Completed\n        Health\n            Incorrect Configuration : None\n"
    assert gpus(said(text)) == [{"key": "gpu", "fabric_state": "completed", "fabric_faults": ()}]


def test_runs_of_a_loop_are_apart() -> None:
    found = said(TWO + printed(("53:00.0", {**NEW, "Performance State": "P0"}), ("54:00.0", OLD)))
    assert [(gpu["key"], gpu.get("performance_state")) for gpu in gpus(found)] == [
        ("gpu0", 2),
        ("gpu1", None),
        ("gpu0", 0),
        ("gpu1", None),
    ]


@pytest.mark.parametrize(
    ("values", "failure"),
    [
        ({"Product Name": "Unknown Error", "GPU UUID": "Unknown Error"}, "Unknown Error"),
        ({"Product Name": "NVIDIA H100", "Temperature": {"GPU Current Temp": "GPU is lost"}}, "GPU is lost"),
        ({"Product Name": "ERR!"}, "ERR!"),
    ],
)
def test_a_gpu_that_is_lost(values: Tree, failure: str) -> None:
    (gpu,) = gpus(said(printed(("53:00.0", values))))
    assert gpu["failure"] == failure
    assert gpu.get("name") in (None, "NVIDIA H100")
    assert "temperature" not in gpu


def test_what_cannot_be_read_is_said() -> None:
    text = printed(("53:00.0", {"Performance State": "fast", "Compute Mode": "N/A", "Clocks": {"SM": "?"}}))
    line = next(n for n, line in enumerate(text.splitlines(), 1) if "fast" in line)
    assert [one for one in said(text) if isinstance(one, NotChecked)] == [
        NotChecked(
            what="Gpu.performance_state",
            subject="gpu0",
            reason=Reason.UNREADABLE,
            path=f"q.txt:{line}",
            detail="'fast' is not a performance state",
        ),
        NotChecked(
            what="Gpu.clock",
            subject="gpu0",
            reason=Reason.UNREADABLE,
            path=f"q.txt:{line + 3}",
            detail="'?' is not a number",
        ),
    ]


def test_cut_at_every_line() -> None:
    """What is left stays true; the sums and lists that are not whole are not said."""
    lines = TWO.splitlines()
    for end in range(len(lines)):
        left = gpus(said("\n".join(lines[:end])))
        for gpu, whole in zip(left, (READ, READ_OLD), strict=False):
            known = {name: value for name, value in gpu.items() if name != "key"}
            if known.get("power") == 629.45:
                known["power"] = 588.39  # of several powers the one of this moment, where it is there
            assert known.items() <= whole.items(), lines[end - 1]


@given(st.permutations(TWO.splitlines()[10:60]))
def test_lines_in_any_order(lines: list[str]) -> None:
    for gpu in gpus(said("\n".join(lines))):
        assert gpu["key"]


@given(st.text() | st.text(alphabet="GPU 0:.53/<>=gpu\n\t|Fabric State"))
def test_any_text(text: str) -> None:
    re.compile(smi_query.BEGIN, re.MULTILINE).search(text)
    for one in said(text):
        assert isinstance(one, (Fact, NotChecked, Observation))


@given(st.lists(st.sampled_from(TWO.splitlines()) | st.text(max_size=20)))
def test_any_lines(lines: list[str]) -> None:
    for one in said("\n".join(lines)):
        assert isinstance(one, (Fact, NotChecked, Observation))


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared with outputs of real tools")
def test_outputs_of_real_tools() -> None:
    """Each look at a GPU is one Gpu with a name; outputs of other tools hold none."""
    seen = 0
    for path in sorted((SHARED / "data/outputs").rglob("*.*")):
        text = path.read_text("utf-8", "replace") if path.suffix in (".txt", ".xml", ".log", ".md", ".json") else ""
        parts = [part for family, part in split(path.name, text, AT, READERS) if family and family.name == "smi_query"]
        assert not parts or path.parent.name.startswith("nvidia-smi"), path
        found = [one for part in parts for one in smi_query.read(part)]
        assert not [one for one in found if isinstance(one, NotChecked)], path
        assert all(gpu.get("name") or gpu["remap_pending"] is False for gpu in gpus(found)), path
        seen += len(gpus(found))
    assert seen == 18
