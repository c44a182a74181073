"""Times of collectives by message size, and the measurements that they are computed from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.bandwidth.collective_algorithms import algorithms_of, known_algorithms, rated_bus
from linkgauge.models.bandwidth.collectives import bus_bandwidth
from linkgauge.models.bandwidth.message_times import STILL, Pace, pace_of, seconds
from linkgauge.models.bandwidth.network_tiers import Level, group
from linkgauge.models.catalog.collectives import collectives
from linkgauge.models.catalog.links import links

ROOT = Path(__file__).parents[3]
CURVES = ROOT.parent / "shared" / "facts" / "msgsize_curves.csv"
OPS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
PODS = (Level("node", 8, 450e9), Level("leaf", 32, 400e9), Level("spine", 4, 12.8e12))
here = pytest.mark.skipif(not CURVES.exists(), reason="no ../shared beside the project: the curves are not here")
paces = st.builds(Pace, st.floats(1e-14, 1e-8), st.floats(0, 1e-2), st.floats(0.4, 1), st.floats(0, 1e-3))
sizes = st.floats(1, 1e13)


@given(paces, sizes, sizes)
def test_larger_messages_take_longer_and_are_never_slower(pace: Pace, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert seconds(pace, small) <= seconds(pace, large) * (1 + 1e-12)
    assert seconds(pace, small) / small >= seconds(pace, large) / large * (1 - 1e-9)
    assert seconds(pace, large) >= max(pace.latency, pace.per_byte * large)


@given(sizes)
def test_with_power_one_it_is_a_constant_startup(size: float) -> None:
    assert seconds(Pace(1e-11, 5e-5), size) == pytest.approx(size * 1e-11 + 5e-5)


def test_half_of_the_rate_is_reached_when_the_rest_takes_as_long_as_the_startup() -> None:
    assert seconds(Pace(1e-11, 5e-5, 0.7), 5e6) == pytest.approx(2 * 5e-5)


def test_measured_times_replace_predicted_times() -> None:
    """At the measured sizes. Between them linear, beyond them as at the nearest size."""
    pace = Pace(1e-11, measured=((1e6, 4.0), (1e8, 2.0), (1e9, 1.5)))
    times = [seconds(pace, size) / (size * 1e-11) for size in (1.0, 1e6, 1e7, 1e8, 1e9, 1e10)]
    assert times == pytest.approx([4, 4, 3, 2, 1.5, 1.5])


@given(st.sampled_from(OPS), st.sampled_from([2, 4, 8, 64, 1024]), st.sampled_from(["nvlink4", "nvlink5", "xgmi"]))
def test_more_gpus_are_never_faster(op: str, ranks: int, grade: str) -> None:
    algorithms = known_algorithms(grade)
    times = [seconds(pace_of(op, group(PODS, many), algorithms, "node"), 1e9) for many in (1, ranks, 2 * ranks)]
    assert times[0] == 0 < times[1]
    if op in ("all_reduce", "all_gather", "reduce_scatter"):
        assert times[1] <= times[2] or ranks == 1024


def test_what_holds_a_collective_is_named() -> None:
    algorithms = known_algorithms("nvlink4")
    assert pace_of("all_reduce", PODS[:1], algorithms, "node").held == "node"
    assert pace_of("all_reduce", PODS, algorithms, "node", switched=True).held == "leaf"
    assert pace_of("alltoall", PODS, algorithms, "node").held == "leaf"
    assert pace_of("sendrecv", group(PODS, 4, 256), algorithms, "node").held == "spine"
    assert pace_of("all_reduce", (), algorithms, "node") == STILL


def test_switches_reduce_from_five_gpus_on() -> None:
    """The bus bandwidth is then above that of rings: 480 and 367 GB/s on eight H200 (links.toml)."""
    algorithms = known_algorithms("nvlink4")
    buses = [
        bus_bandwidth("all_reduce", 8, 1e12, seconds(pace_of("all_reduce", PODS[:1], algorithms, "node", on), 1e12))
        / 1e9
        for on in (True, False)
    ]
    assert buses == pytest.approx([480, 345], rel=0.05)
    four = group(PODS, 4)
    assert pace_of("all_reduce", four, algorithms, "node", True) == pace_of(
        "all_reduce", four, algorithms, "node", False
    )


def test_no_share_of_a_fabric_is_above_what_it_carries() -> None:
    rows = [one for one in collectives() if one.bus is not None]
    assert rows
    for one in rows:
        assert one.bus is not None
        assert (0.3 if one.transport == "tcpx" else 0.5) < one.bus / rated_bus(one) < 1.0, one


def test_the_transport_of_a_machine_type_decides_its_startup_between_nodes() -> None:
    """EFA of an unknown machine type of AWS needs more time than InfiniBand."""
    times = [
        seconds(pace_of("all_reduce", PODS, known_algorithms("nvlink4", name), "node", True), 1e6)
        for name in ("hgx-h100-8", "aws-p5en.48xlarge", "gcp-a3-highgpu-8g")
    ]
    assert times == sorted(times)


def test_only_nodes_whose_switches_reduce_pass_each_nic_once() -> None:
    """Two nodes: AML NDmv4 reach 188 GB/s of 200, two B200 of Vultr 718 of 400 (further_curves.csv)."""
    pair = (Level("node", 8, 450e9), Level("fabric", 2, 100e9))
    algorithms = known_algorithms("nvlink4")
    ring, trees = (pace_of("all_reduce", pair, algorithms, "node", on).per_byte for on in (False, True))
    assert ring / trees == pytest.approx(1.875, rel=0.1)


def test_more_nodes_start_later_and_a_ring_of_all_gpus_has_its_latency() -> None:
    algorithms = known_algorithms("nvlink4")
    for op in ("all_reduce", "all_gather"):
        few, many = (pace_of(op, (PODS[0], Level("fabric", n, 4e11)), algorithms, "node", True) for n in (2, 128))
        assert 3 < many.startup / few.startup < 8
    assert many.latency == pytest.approx(127 * 4e-6 + 128 * 7 * 1.9e-6)


def test_a_platform_has_one_vote() -> None:
    """A second equal row of a platform changes nothing."""
    rows = collectives()
    again = [*rows, *(one for one in rows if one.platform == "8xH200")]
    assert algorithms_of("nvlink4", rows=again) == known_algorithms("nvlink4")


def test_without_any_alltoall_a_ring_is_used() -> None:
    rows = [one for one in collectives() if one.op == "all_reduce"]
    found = algorithms_of("nvlink3", rows=rows)
    assert found.near["alltoall"].startup == pytest.approx(found.near["all_reduce"].startup)


def test_links_without_a_published_collective_are_refused() -> None:
    none = msgspec.structs.replace(links(), measured=())
    with pytest.raises(LookupError, match="nothing is published of collectives over nvlink4"):
        algorithms_of("nvlink4", none)


@here
def test_predictions_are_as_near_as_they_must_be_and_the_docs_show_them() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.accuracy.collectives.collective_curves"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "NOT MET" not in done.stdout
    assert done.stdout in (ROOT / "docs" / "reference" / "accuracy.md").read_text(encoding="utf-8")


@here
@pytest.mark.slow
def test_the_catalog_holds_what_fits_the_curves() -> None:
    """`--fit` prints the numbers of collectives.toml, so none is set by hand."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.accuracy.collectives.collective_curves", "--fit"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    printed = [line.split("startup ")[1].split(", bus")[0] for line in done.stdout.splitlines() if "startup" in line]
    rows = [f"{one.startup * 1e6:.3g} us, power {one.power:g}" for one in collectives() if one.startup]
    assert sorted(printed) == sorted(rows)
