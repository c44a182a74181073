"""The same test of the same ends, several times in one text."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

_SYMPTOM = ("not-enough-evidence", "info")
_SIZES = [65536, 1 << 20, 4 << 20]


def _osu(last: float, buffers: str = "D D", image: str = "a", validated: bool = False) -> str:
    """A run of osu_bw that reaches `last` MB/s."""
    rows = [
        f"{size:<10}{last * share:20.2f}" + "              Pass" * validated
        for size, share in zip(_SIZES, (0.8, 0.95, 1.0), strict=True)
    ]
    command = f"$ srun -N2 --environment={image} ./osu_bw {buffers}\n" if buffers else ""
    places = f"# Send Buffer on {image}\n" * ("Receive" in image)
    head = (
        f"# OSU MPI-CUDA Bandwidth Test v7.4\n{places}# Size      Bandwidth (MB/s)" + "        Validation" * validated
    )
    return f"{command}{head}\n" + "\n".join(rows) + "\n\n"


def _iperf(rate: float) -> str:
    head = "Connecting to host 10.0.0.2, port 5201\n[  5] local 10.0.0.1 port 40112 connected to 10.0.0.2 port 5201\n"
    row = f"0.00-10.00  sec  {rate * 1.16:.2f} GBytes  {rate:.1f} Gbits/sec"
    ends = "".join(f"[SUM]   {row}    {end}\n" for end in ("0             sender", "              receiver"))
    return f"$ iperf3 -c 10.0.0.2 -P 8\n{head}{ends}\n"


def _nccl(busbw: float, sizes: list[int]) -> str:
    columns = "     time   algbw   busbw #wrong"
    head = f"#       size         count      type   redop    root{columns}{columns}"
    rows = []
    for size in sizes:
        one = f"{size / busbw / 1e3 * 1.75:9.1f} {busbw / 1.75:7.2f} {busbw:7.2f}      0"
        rows.append(f"{size:12} {size // 4:12}     float     sum      -1 {one} {one}")
    return "\n".join(["$ ./all_reduce_perf -b 1G -e 8G -f 2 -g 8", head, *rows, "", ""])


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (_osu(24010.5) + _osu(1790.2, image="b"), ("1.79 GB/s", "24.0 GB/s")),
        (_osu(11900.0, validated=True) + _osu(3100.0, validated=True), ("3.10 GB/s", "11.9 GB/s")),
        (_osu(11900.0, "") + _osu(3100.0, "") + _osu(11850.0, ""), ("3.10 GB/s", "11.9 GB/s")),
        (_nccl(370.0, [1 << 30, 1 << 31]) + _nccl(120.0, [1 << 30, 1 << 31]), ("120.0 GB/s", "370.0 GB/s")),
    ],
)
def test_runs_that_differ_are_a_symptom(text: str, numbers: tuple[str, str]) -> None:
    report = report_of(text)
    (finding,) = report.findings
    assert (finding.code, finding.severity) == _SYMPTOM
    assert all(number in finding.message for number in numbers)
    assert report.verdict == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        _osu(24010.5) + _osu(22100.0),
        _osu(24010.5) + _osu(12900.0),
        _osu(1790.2) + _osu(24010.5),  # repaired
        _osu(279500.0) + _osu(23800.0, "H D"),  # of other memories
        _osu(279500.0) + _osu(23800.0, "H D") + _osu(9100.0, "H H"),
        _osu(279500.0, "") + _osu(23800.0, "", "HOST (H) and Receive Buffer on DEVICE (D)"),
        _nccl(370.0, [1 << 30, 1 << 31]) + _nccl(361.0, [1 << 30, 1 << 31]),
        _iperf(92.1) + _iperf(9.4),  # can be to two machines
    ],
)
def test_equal_or_other_runs(text: str) -> None:
    assert found_in(text) == []


def test_a_text_with_a_fault_has_its_cause() -> None:
    fault = "NVRM: Xid (PCI:0000:53:00): 79, pid=1234, GPU has fallen off the bus.\n\n"
    codes = {code for code, _, _ in found_in(fault + _osu(24010.5) + _osu(1790.2))}
    assert codes
    assert "not-enough-evidence" not in codes


@pytest.mark.parametrize("rate", [1790.2, 24010.5])
@pytest.mark.parametrize("size", _SIZES)
def test_data_that_fail_their_validation(rate: float, size: int) -> None:
    good = _osu(rate, validated=True)
    bad = "\n".join(line.replace("Pass", "Fail") if line.startswith(f"{size} ") else line for line in good.split("\n"))
    assert found_in(bad) == [(*_SYMPTOM, "node")]
    assert f"{size} bytes" in report_of(bad).findings[0].message
    assert report_of(bad).verdict != "ok"
    assert found_in(good) == []
