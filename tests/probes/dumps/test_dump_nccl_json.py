"""What nccl-tests and rccl-tests write as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Setting
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import nccl_json
from linkgauge.probes.dumps.core.part import Part

AT = 1795230000.0
NAME = "NVIDIA H100 80GB HBM3"


def device(rank: int, host: str, number: int) -> dict[str, Any]:
    bus = f"0000:{number + 0x1B:02x}:00"
    return {
        "rank": rank,
        "group": 0,
        "pid": 7,
        "hostname": host,
        "device": number,
        "device_hex": bus,
        "device_info": NAME,
    }


def row(size: int, rate: float) -> dict[str, Any]:
    body = {"time": 9.5, "alg_bw": rate, "bus_bw": 1.5 * rate, "nwrong": None}
    return {
        "size": size,
        "count": size // 4,
        "type": "float",
        "redop": "sum",
        "root": "    -1",
        "out_of_place": body,
        "in_place": {**body, "bus_bw": 1.0},
    }


RUN = {
    "version": 2,
    "start_time": "2026-11-21 10:00:00",
    "args": ["./build/all_reduce_perf", "-b", "8"],
    "env": ["HOME=/root", "NCCL_P2P_DISABLE=1"],
    "nccl_version": 22707,
    "config": {"nthreads": 1, "devices": [device(0, "a", 0), device(1, "a", 1), device(2, "b", 0), device(3, "b", 1)]},
    "results": [row(1024, 0.5), row(1 << 30, 200.0)],
    "out_of_bounds": {"count": 0, "okay": "true"},
}
TEXT = json.dumps(RUN, separators=(",", ":"))
RECORD = (
    '{{"numCycle":0, "name":"AllGather", "nodes":1, "ranks":2, "ranksPerNode":2, "gpusPerRank":1, "size":{}, '
    '"type":"float", "redop":"none", "inPlace":{}, "time":12.000000, "algBw":{:f}, "busBw":{:f}, "wrong":"0"}}'
)


def read(text: str) -> list[Record]:
    assert recognise(text)
    return list(nccl_json.read(Part("r.json", 1, text, AT)))


def seen(flow: Flow, value: float, line: int, text: str) -> Observation:
    return Observation(
        about=flow,
        quantity="bus_bandwidth",
        unit="bytes_per_second",
        value=value,
        at=AT,
        busy=True,
        evidence=Evidence(f"r.json:{line}", text),
    )


def test_a_run_of_nccl_tests() -> None:
    """GPUs of the first host, as the table's reader has them."""
    ranks = ("rank0", "rank1", "rank2", "rank3")
    assert read(TEXT) == [
        Setting(key="NCCL_P2P_DISABLE", value="1", cites={"value": Evidence("r.json:1", "NCCL_P2P_DISABLE=1")}),
        *(
            Gpu(
                key=f"gpu{n}",
                name=NAME,
                address=f"0000:{n + 0x1B:02x}:00.0",
                cites={"name": Evidence("r.json:1", f"device {n} [0000:{n + 0x1B:02x}:00] {NAME}")},
            )
            for n in (0, 1)
        ),
        seen(Flow("all_reduce", ranks, 1024), 0.75e9, 1, "size 1024: busbw 0.75"),
        seen(Flow("all_reduce", ranks, 1 << 30), 300e9, 1, "size 1073741824: busbw 300"),
    ]


def test_records_of_rccl_tests() -> None:
    """Out of place, as of the tables."""
    rows = [RECORD.format(size, inside, 10, 5 + inside) for size in (1024, 2048) for inside in (0, 1)]
    flow = ("rank0", "rank1")
    expected = [
        seen(Flow("all_gather", flow, 1024), 5e9, 2, "size 1024: busbw 5"),
        seen(Flow("all_gather", flow, 2048), 5e9, 4, "size 2048: busbw 5"),
    ]
    assert read("[\n" + ",\n".join(rows) + "\n]\n") == expected
    assert [one for one in read("\n" + "\n".join(rows)) if isinstance(one, Observation)] == expected


@pytest.mark.parametrize("end", [20, len(TEXT) // 2, len(TEXT) - 1])
def test_a_text_that_was_cut(end: int) -> None:
    (only,) = nccl_json.read(Part("r.json", 1, TEXT[:end], AT))
    assert isinstance(only, NotChecked)
    assert "no whole JSON text" in only.why


@pytest.mark.parametrize("rates", [(10**400, 1.0), (1.0, float("nan")), (float("inf"), 1.0), (1.0, -1.0)])
def test_numbers_that_are_no_rates(rates: tuple[float, float]) -> None:
    row = {"size": 8, "out_of_place": dict(zip(("alg_bw", "bus_bw"), rates, strict=True))}
    assert list(nccl_json.read(Part("f", 1, json.dumps({"version": 2, "results": [row]})))) == []


def test_what_is_another() -> None:
    for text in ('{"version": 1}', '{"start_time": 2}', '{"start":{"connected":['):
        assert not re.search(nccl_json.BEGIN, text, re.MULTILINE)


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*RUN, *row(1, 1), *device(0, "", 0)]), inner),
    max_leaves=8,
)


@given(st.lists(values.map(json.dumps) | st.text(max_size=9) | st.just(RECORD.format(8, 0, 1, 1))).map("\n".join))
def test_any_text(text: str) -> None:
    for one in nccl_json.read(Part("f", 1, text)):
        assert decode(encode(one)) == one
