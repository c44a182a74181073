"""The table of `nvidia-smi` of old and new drivers, its versions, and what it says when it cannot work."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.nvidia import smi_table
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared"
RULE = "+-------------------------------+----------------------+----------------------+"
HEAD = """\
| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
"""
TABLE = f"""{HEAD}\
|   0  NVIDIA A100-SXM...  On   | 00000000:07:00.0 Off |                    3 |
| N/A   27C    P0    51W / 400W |      3MiB / 40536MiB |      0%      Default |
|                               |                      |             Disabled |
{RULE}
|   1  ERR!                Off  | 00000000:0F:00.0 Off |                 ERR! |
|ERR!  ERR! ERR!    ERR! / ERR! |      1MiB / 40536MiB |    ERR!      Default |
|                               |                      |                 ERR! |
{RULE}
|  12  NVIDIA L4           Off  | 00000000:10:00.0 Off |                  N/A |
| N/A   41C    P8    N/A /  72W |      0MiB / 23034MiB |      0%   E. Process |
|                               |                      |                  N/A |
{RULE}
"""


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(smi_table.read(Part("smi.txt", 1, text)))


def plain(one: Record) -> Record:
    """Without where it stood."""
    return replace(one, cites={}) if isinstance(one, Fact) else one


def test_table() -> None:
    """A GPU that works, one that answers nothing, and one of another kind; names that were cut are not said."""
    assert [plain(one) for one in said(TABLE)] == [
        Driver(key="nvidia", version="470.82.01", library="470.82.01", cuda="11.4"),
        Gpu(
            key="gpu0",
            address="0000:07:00.0",
            performance_state=0,
            power=51.0,
            power_limit=400.0,
            temperature=27.0,
            memory=40536 << 20,
            memory_used=3 << 20,
            mig=False,
            mig_instances=0,
            persistence=True,
            compute_mode="default",
            ecc_uncorrected=3,
        ),
        Observation(
            about="gpu0",
            quantity="ecc_uncorrected",
            unit="count",
            value=3.0,
            at=0.0,
            evidence=Evidence("smi.txt:7", TABLE.split("\n")[6]),
        ),
        Gpu(
            key="gpu1",
            address="0000:0f:00.0",
            failure="ERR!",
            memory=40536 << 20,
            memory_used=1 << 20,
            persistence=False,
            compute_mode="default",
        ),
        Gpu(
            key="gpu12",
            name="NVIDIA L4",
            address="0000:10:00.0",
            performance_state=8,
            power_limit=72.0,
            temperature=41.0,
            memory=23034 << 20,
            memory_used=0,
            persistence=False,
            compute_mode="exclusive process",
        ),
    ]


def test_where_it_stood() -> None:
    (gpu, *_) = [one for one in said(TABLE) if isinstance(one, Gpu)]
    assert gpu.cites["temperature"] == Evidence("smi.txt:8", TABLE.split("\n")[7])


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("NVIDIA-SMI version  : 590.48.01\nNVML version        : 590.48", {"nvml": "590.48"}),
        (
            "| NVIDIA-SMI 610.57.04   KMD Version: 610.57.04     CUDA UMD Version: 13.3     |",
            {"version": "610.57.04", "library": "610.57.04", "cuda": "13.3"},
        ),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
            "NVIDIA driver is installed and running.",
            {"failure": "Driver Not Loaded"},
        ),
        ("Failed to initialize NVML: Driver/library version mismatch", {"failure": "Driver/library version mismatch"}),
        ("No devices were found", {"gpus": 0}),
    ],
)
def test_the_driver(line: str, fields: dict[str, Any]) -> None:
    assert [plain(one) for one in said(line)] == [Driver(key="nvidia", **fields)]


def test_a_mismatch_names_the_library() -> None:
    text = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161\n"
    assert [plain(one) for one in said(text)][1] == Driver(key="nvidia", nvml="535.161")


def test_without_permission_nothing_is_wrong() -> None:
    assert said("Failed to initialize NVML: Insufficient Permissions") == [
        NotChecked(
            what="Gpu",
            subject="node",
            reason=Reason.PERMISSION,
            path="smi.txt:1",
            detail="Insufficient Permissions",
            how="run nvidia-smi as root",
        )
    ]


@pytest.mark.parametrize(
    ("line", "gpu"),
    [
        ("GPU3: 0000:AF:00.0: Unknown Error", Gpu(key="gpu3", address="0000:af:00.0", failure="Unknown Error")),
        (
            "GPU 0000:53:00.0: GPU is lost.  Reboot the system to recover this GPU",
            Gpu(key="0000:53:00.0", address="0000:53:00.0", failure="GPU is lost"),
        ),
        ("GPU0000:CB:00.0: Unknown Error", Gpu(key="0000:cb:00.0", address="0000:cb:00.0", failure="Unknown Error")),
        ("GPU1: Unknown Error", Gpu(key="gpu1", failure="Unknown Error")),
    ],
)
def test_a_gpu_that_does_not_answer(line: str, gpu: Gpu) -> None:
    assert [plain(one) for one in said(f"Unable to determine the device handle for {line}")] == [gpu]


def test_cut_at_every_line() -> None:
    whole = {one.key: one for one in said(TABLE) if isinstance(one, Fact)}
    lines = TABLE.split("\n")
    for end in range(1, len(lines)):
        for one in said("\n".join(lines[:end])):
            if not isinstance(one, (Driver, Gpu)):
                continue
            known = whole[one.key]
            for name in one.__dataclass_fields__:
                value = getattr(one, name)
                assert name == "cites" or value is None or value == getattr(known, name)


@given(
    st.text() | st.text(alphabet="| 0NVIDIA-SM:.=+\nP/WC") | st.lists(st.sampled_from(TABLE.split("\n"))).map("\n".join)
)
def test_any_text(text: str) -> None:
    re.compile(smi_table.BEGIN, re.MULTILINE).search(text)
    for one in smi_table.read(Part("smi.txt", 1, text)):
        assert isinstance(one, (Fact, NotChecked, Observation))


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared with outputs of real tools")
def test_outputs_of_real_tools() -> None:
    """A table of each capture while it was at rest and under load, and none elsewhere."""
    for path in sorted(SHARED.glob("data/outputs/*/*")) + sorted(SHARED.glob("cases/*/dumps/*")):
        parts = split(path.name, path.read_text("utf-8", "replace"), 0.0, READERS)
        found = [one for family, part in parts if family and family.name == "smi_table" for one in family.read(part)]
        gpus = [one for one in found if isinstance(one, Gpu)]
        assert len(gpus) == (2 if path.name.startswith("linux-x86_64") else 0), path
        assert all(one.temperature and one.power and one.memory for one in gpus), path


def test_the_date_above_the_table_belongs_to_it() -> None:
    text = f"Sat Nov 21 10:11:12 2026       \n+{'-' * 77}+\n{TABLE}"
    ((family, part),) = split("f", text, 0.0, READERS)
    assert (family and family.name, part.first) == ("smi_table", 1)
