"""`nvidia-smi nvlink` and `nvidia-smi -L`: links up and down, their ends, what they count; cut, and of rubbish."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.records import Evidence, Fact, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.nvidia import smi_nvlink
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared"
AT = 1795230000.0
H200, V100 = "NVIDIA H200", "Tesla V100-SXM2-32GB"


def head(gpu: int, name: str = H200) -> str:
    return f"GPU {gpu}: {name} (UUID: GPU-00000000-0000-0000-0000-00000000000{gpu})"


def status(gpu: int, speeds: Sequence[float | None], name: str = H200) -> str:
    lines = (
        f"\t Link {n}: " + ("<inactive>" if speed is None else f"{speed:g} GB/s") for n, speed in enumerate(speeds)
    )
    return "\n".join((head(gpu, name), *lines)) + "\n"


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(smi_nvlink.read(Part("nvlink.txt", 1, text, AT)))


def line(text: str, number: int) -> Evidence:
    return Evidence(f"nvlink.txt:{number}", text.split("\n")[number - 1].strip())


def counts(text: str) -> list[tuple[int | None, int | None, float | None]]:
    return [(one.nvlinks, one.nvlinks_present, one.nvlink_rate) for one in said(text) if isinstance(one, Gpu)]


def test_names_alone() -> None:
    """As collect_env of PyTorch lists them, between lines of its own."""
    text = "GPU models and configuration: \nGPU 0: NVIDIA L4\nGPU 1: NVIDIA H200\n\nNvidia driver version: 550.54.15\n"
    assert recognise(text)
    assert said(text) == [
        Gpu(key="gpu0", name="NVIDIA L4", cites={"name": line(text, 2)}),
        Gpu(key="gpu1", name=H200, cites={"name": line(text, 3)}),
    ]
    one = "GPU models and configuration: GPU 0: NVIDIA L4\n"
    assert said(one) == [Gpu(key="gpu0", name="NVIDIA L4", cites={"name": line(one, 1)})]


@pytest.mark.parametrize("uuid", ["...", "GPU-xxxxxxxx-xxxx", "redacted"])
def test_names_that_were_blacked_out(uuid: str) -> None:
    text = status(3, [25.781, None, *[25.781] * 4], V100).replace("GPU-00000000-0000-0000-0000-000000000003", uuid)
    assert [(one.name, one.uuid, one.nvlinks) for one in said(text) if isinstance(one, Gpu)] == [(V100, None, 5)]


def test_links_up_and_down() -> None:
    """All that is read of a V100 of which one link is down; 25.781 GB/s of signals are 25 of bytes."""
    text = status(3, [25.781, None, 25.781, 25.781, 25.781, 25.781], V100)
    first = line(text, 1)
    ups = [
        GpuLink(
            key=f"gpu3/nvlink{n}",
            gpu="gpu3",
            kind="nvlink",
            active=n != 1,
            version=None if n == 1 else 2,
            speed=None if n == 1 else 25.781e9,
            cites={"active": line(text, n + 2)},
        )
        for n in range(6)
    ]
    assert said(text) == [
        Gpu(
            key="gpu3",
            name=V100,
            uuid="GPU-00000000-0000-0000-0000-000000000003",
            nvlinks=5,
            nvlinks_present=6,
            nvlink_rate=25e9,
            cites={"name": first, "uuid": first, "nvlinks": line(text, 3)},
        ),
        *ups,
    ]


@pytest.mark.parametrize(
    ("name", "speed", "rate"),
    [
        (H200, 26.562, 25e9),
        ("NVIDIA B200", 53.125, 50e9),
        ("NVIDIA A100-SXM4-80GB", 25, 25e9),
        ("an unknown", 25, None),
    ],
)
def test_rates(name: str, speed: float, rate: float | None) -> None:
    assert [one[2] for one in counts(status(0, [speed], name) + status(1, [speed], name))] == [rate, rate]


def test_lists_that_are_whole() -> None:
    """A GPU behind it, or as many links as the product has; else nobody knows how many are up."""
    eighteen, seven = [26.562] * 18, [26.562] * 7
    assert counts(status(0, seven) + status(1, eighteen)) == [(7, 7, 25e9), (18, 18, 25e9)]
    assert counts(status(0, eighteen) + status(1, seven)) == [(18, 18, 25e9), (None, None, 25e9)]
    assert counts(status(0, seven)) == [(None, None, 25e9)]
    assert counts(status(0, seven) + "\t [...]\n" + status(1, eighteen))[0] == (None, None, 25e9)
    assert counts(status(0, [26.562], "an unknown")) == [(1, 1, 25e9)]


def test_all_links_are_down() -> None:
    refusal = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
    assert counts(head(0) + "\n" + refusal + head(1) + "\n") == [(0, None, None), (None, None, None)]


def test_list_of_gpus() -> None:
    """`nvidia-smi -L`, with instances of MIG."""
    parts = "  MIG 3g.40gb     Device  0: (UUID: MIG-0)\n  MIG 1g.10gb     Device  1: (UUID: MIG-1)\n"
    text = f"{head(0)}\n{parts}{head(1)}\n{parts}"
    assert [(one.key, one.name, one.mig, one.mig_instances) for one in said(text) if isinstance(one, Gpu)] == [
        ("gpu0", H200, True, 2),
        ("gpu1", H200, True, None),  # the second list may be cut
    ]


def test_far_ends() -> None:
    text = head(0) + "\n\t Link 0: Remote Device 00000000:CD:00.0: Link 25\n\t Link 1: 00000008:00:00.0\n"
    text += "\t Link 2: Remote Device FFFFFFFF:FF:FF.0: Link 0\n"
    assert [one for one in said(text) if isinstance(one, GpuLink)] == [
        GpuLink(key="gpu0/nvlink0", gpu="gpu0", kind="nvlink", remote="0000:cd:00.0", cites={"remote": line(text, 2)}),
        GpuLink(key="gpu0/nvlink1", gpu="gpu0", kind="nvlink", remote="0008:00:00.0", cites={"remote": line(text, 3)}),
    ]


def test_counters() -> None:
    """Of links what is not zero, of the GPU the sum; of NVLink 5 other names."""
    text = "\n".join(
        [
            head(0),
            "\t Link 0: Replay Errors: 0",
            "\t Link 0: CRC Errors: 7",
            "",
            "\t Link 1: Replay Errors: 0",
            "\t Link 1: CRC Errors: 5",
            head(1),
            "\t Link 4: Total link recovery events: 3",
            "\t Link 4: Effective BER: 15e-255",
            "\t Link 4: Tx packets: 99",
            "\t Link 4: FEC Errors - 0: 17941761",
            "\t Link 4: FEC Errors - 3: 2",
            "\t Link 4: FEC Errors - 4: 0",
            "\t Link 5: Effective BER: 1.2.3e-5",
            "\t Link 5: Effective BER: .e-1",
        ]
    )

    def seen(about: str, quantity: str, unit: str, value: float, where: int) -> Observation:
        return Observation(about=about, quantity=quantity, unit=unit, value=value, at=AT, evidence=line(text, where))

    assert [one for one in said(text) if isinstance(one, Observation)] == [
        seen("gpu0", "nvlink_replay", "count", 0, 2),
        seen("gpu0/nvlink0", "nvlink_crc", "count", 7, 3),
        seen("gpu0/nvlink1", "nvlink_crc", "count", 5, 6),
        seen("gpu0", "nvlink_crc", "count", 12, 3),
        seen("gpu1/nvlink4", "nvlink_recovery", "count", 3, 8),
        seen("gpu1", "nvlink_recovery", "count", 3, 8),
        seen("gpu1/nvlink4", "nvlink_effective_ber", "ratio", 15e-255, 9),
        seen("gpu1/nvlink4", "nvlink_fec_mended", "symbols", 3, 12),
    ]


WHOLE = status(0, [26.562] * 18) + status(1, [26.562] * 17 + [None])


def test_cut_at_every_line() -> None:
    """What is left stays true: of a list that is cut, no number is said."""
    whole = {one.key: one for one in said(WHOLE) if isinstance(one, Fact)}
    lines = WHOLE.split("\n")
    for end in range(1, len(lines)):
        for one in said("\n".join(lines[:end])):
            assert isinstance(one, (Gpu, GpuLink))
            if isinstance(one, Gpu):
                known = whole[one.key]
                assert isinstance(known, Gpu)
                assert one.nvlinks in (None, known.nvlinks)
                assert one.nvlink_rate in (None, known.nvlink_rate)
            else:
                assert one == whole[one.key]


@given(st.permutations(status(0, [26.562] * 17 + [None]).splitlines()[1:]))
def test_links_in_any_order(lines: list[str]) -> None:
    text = "\n".join([head(0), *lines])
    assert counts(text) == [(17, 18, 25e9)]


@given(
    st.text()
    | st.text(alphabet="GPU 0:Link.GB/s<\n\t(-)")
    | st.lists(st.sampled_from(WHOLE.split("\n"))).map("\n".join)
)
def test_any_text(text: str) -> None:
    re.compile(smi_nvlink.BEGIN, re.MULTILINE).search(text)
    for one in smi_nvlink.read(Part("nvlink.txt", 1, text)):
        assert isinstance(one, (Fact, Observation))


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared with outputs of real tools")
def test_outputs_of_real_tools() -> None:
    """All links of good machines are up; no output of another tool holds a list of links."""
    for path in sorted(SHARED.glob("data/outputs/*/*")) + sorted(SHARED.glob("cases/*healthy*/dumps/*")):
        parts = split(path.name, path.read_text("utf-8", "replace"), 0.0, READERS)
        found = [one for family, part in parts if family and family.name == "smi_nvlink" for one in family.read(part)]
        listed = "nvlink" in path.name or path.name.startswith("linux-x86_64")
        assert bool(found) == (listed and path.suffix != ".tsv"), path
        assert all(one.active for one in found if isinstance(one, GpuLink)), path
        gpus = [one for one in found if isinstance(one, Gpu) and one.nvlinks_present]
        assert all(one.nvlinks == one.nvlinks_present and one.nvlink_rate == 25e9 for one in gpus), path
