"""The web server: its answers, its users, and its state when the service loop has stopped."""

from __future__ import annotations

import gzip
import json
import socket
from html import escape
from typing import Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.web.pages import Pages
from linkgauge.agent.web.responses import Request, reply
from linkgauge.agent.web.server import serving
from linkgauge.exporters.formats.json import as_json
from linkgauge.exporters.html.front_page import front_page
from linkgauge.exporters.html.report_page import as_html
from linkgauge.exporters.html.styles import policy
from linkgauge.exporters.metrics.prometheus import page
from linkgauge.exporters.metrics.sample import CycleInfo
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked
from linkgauge.models.facts.units import from_utc
from linkgauge.models.report import Verdict
from linkgauge.models.site.gate import Gate
from tests.support.nodes.described import node, report_of
from tests.support.programs.web_clients import AT, Clock, get, pages_of, report, server_of

CYCLE_INFO = CycleInfo(ended=from_utc(AT), seconds=0.25)


def test_a_scrape() -> None:
    with server_of() as server:
        got = get(server)
        new = get(server, headers={"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
        zipped = get(server, headers={"Accept-Encoding": "gzip, deflate"})
        plain = get(server, headers={"Accept-Encoding": "gzip;q=0, identity"})
    assert (got.status, got.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert got.body == page(report("hgx-h100"), CYCLE_INFO, {"rack": "r7"}) == plain.body
    assert new.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert new.body == page(report("hgx-h100"), CYCLE_INFO, {"rack": "r7"}, openmetrics=True)
    assert gzip.decompress(zipped.body) == got.body
    assert zipped.headers["content-encoding"] == "gzip"


def test_the_other_pages() -> None:
    with server_of() as server:
        answers = {
            path: get(server, path)
            for path in ("/", "/healthz", "/report", "/report?x=1", "/report.html", "/nothing", "/metrics/")
        }
        head = get(server, method="HEAD")
        posts = [get(server, method=method) for method in ("POST", "PUT", "DELETE", "OPTIONS")]
    assert {path: (got.status, got.headers["content-type"].partition(";")[0]) for path, got in answers.items()} == {
        "/": (200, "text/html"),
        "/healthz": (200, "text/plain"),
        "/report": (200, "application/json"),
        "/report?x=1": (200, "application/json"),
        "/report.html": (200, "text/html"),
        "/nothing": (404, "text/plain"),
        "/metrics/": (404, "text/plain"),
    }
    assert answers["/report"].body.decode() == as_json(report("hgx-h100"))
    assert answers["/"].body.decode() == front_page(report("hgx-h100"), trusted=True)
    assert answers["/report.html"].body.decode() == as_html(report("hgx-h100"))
    for path in ("/", "/report.html"):
        assert answers[path].headers["content-security-policy"] == f"{policy()}; frame-ancestors 'none'"
    assert (head.status, head.body, int(head.headers["content-length"]) > 10_000) == (200, b"", True)
    assert {(got.status, got.headers["allow"]) for got in posts} == {(405, "GET, HEAD")}
    assert {got.headers["server"] for got in (*answers.values(), head, *posts)} == {"linkgauge"}


def test_the_report_is_not_for_strangers() -> None:
    pages = pages_of()
    assert reply(pages, Request("GET", "/metrics")).status == 200
    for path in ("/report", "/report.html"):
        assert reply(pages, Request("GET", path)).status == 403
        assert reply(pages, Request("GET", path, trusted=True)).status == 200


def test_strangers_see_no_evidence_and_no_picture() -> None:
    found = report_of(node("hgx-h100", "\n[device.gpu1]\nwidth = 8\n"))
    pages = Pages(monotonic=Clock())
    pages.put(found, CYCLE_INFO)
    front, whole = (reply(pages, Request("GET", "/", trusted=trusted)).body.decode() for trusted in (False, True))
    for part in ("<svg", "<dt>seen</dt>", "<dt>do</dt>", "<dt>cause</dt>", "<dt>source</dt>", "<h2>Links</h2>"):
        assert (part in front, part in whole) == (False, True), part
    for shown in (front, whole):
        assert f"<p>{escape(found.findings[0].message)}</p>" in shown
        for path in ("/report.html", "/report", "/metrics", "/healthz", "/ready"):
            assert f'<a href="{path}">' in shown


def test_names_of_devices_are_no_markup() -> None:
    named = replace(report("desktop"), node="<script>x</script>")
    pages = Pages(monotonic=Clock())
    pages.put(named, CYCLE_INFO)
    for form in ("front", "whole"):
        assert b"<script>x" not in pages.read(form)
        assert b"&lt;script&gt;x" in pages.read(form)


def test_the_front_page_explains_an_unknown_verdict() -> None:
    """It shows what was not checked as the public metric does, without the details."""
    unread = (
        NotChecked(what="Gpu.ecc", subject="gpu0", reason=Reason.PERMISSION, detail="secret", how="sudo"),
        NotChecked(what="Gpu", subject="gpu1", reason=Reason.PERMISSION, detail="secret"),
        NotChecked(what="Event", subject="node", reason=Reason.NO_ANSWER, detail="secret"),
    )
    unknown = replace(report("desktop"), verdict="unknown", checks={"gpu-missing": False}, not_checked=unread)
    pages = Pages(monotonic=Clock())
    before = pages.read("front").decode()
    assert (
        '<p class="unknown">The verdict is unknown: no cycle yet. The log of the service has the reason.</p>' in before
    )
    pages.put(unknown, CYCLE_INFO)
    shown = pages.read("front").decode()
    why = "This node is not known to be healthy: gpu-missing could not be checked."
    assert f'<p class="unknown">{why}</p>' in shown
    assert [shown.count(text) for text in ("secret", "<td>permission</td>", "<td>no-answer</td>")] == [0, 1, 1]
    assert pages.read("whole").count(b"secret") == 3
    pages.put(report("desktop"), CYCLE_INFO)
    assert '<p class="unknown">' not in pages.read("front").decode()


def test_stale_cycles_are_reported() -> None:
    clock = Clock()
    pages = pages_of(clock=clock)
    with server_of(pages) as server:
        clock.now = 60.0  # four cycles
        fresh = [get(server, path) for path in ("/metrics", "/healthz")]
        clock.now = 60.1
        stale = [get(server, path) for path in ("/metrics", "/healthz", "/report", "/")]
        pages.put(report("hgx-h100"), CYCLE_INFO)
        again = [get(server, path) for path in ("/metrics", "/healthz")]
    assert [got.status for got in (*fresh, *stale, *again)] == [200, 200, 200, 503, 200, 200, 200, 200]
    lines = [line for line in stale[0].body.decode().splitlines() if not line.startswith(("#", "linkgauge_build_info"))]
    assert lines == [
        'linkgauge_node_info{node="hgx",profile="hgx-h100-8",rack="r7"} 1.0',
        'linkgauge_verdict{verdict="ok"} 0.0',
        'linkgauge_verdict{verdict="degraded"} 0.0',
        'linkgauge_verdict{verdict="failed"} 0.0',
        'linkgauge_verdict{verdict="unknown"} 1.0',
        'linkgauge_not_checked{check="cycle",reason="stopped"} 1.0',
        "linkgauge_cycle_timestamp_seconds 1.79523e+09",
        "linkgauge_cycle_duration_seconds 0.25",
        "linkgauge_stuck_children 0.0",
    ]
    shown = json.loads(stale[2].body)
    assert (shown["verdict"], shown["findings"], shown["not_checked"][0]["why"]) == (
        "unknown",
        [],
        f"no cycle since {AT}",
    )
    assert fresh == again


def test_before_the_first_cycle_nothing_is_known() -> None:
    clock = Clock()
    pages = Pages(monotonic=clock)
    assert b'linkgauge_verdict{verdict="unknown"} 1.0' in pages.read("metrics")
    assert b"linkgauge_cycle_timestamp" not in pages.read("metrics")
    assert pages.alive()  # it has only begun
    clock.now = 61.0
    assert not pages.alive()


def test_a_page_is_rendered_once_a_cycle() -> None:
    pages = pages_of()
    first = pages.read("metrics")
    assert pages.read("metrics") is first
    pages.put(report("hgx-h100"), CYCLE_INFO)
    assert pages.read("metrics") is not first


def test_other_labels_hold_from_the_next_report_on() -> None:
    pages = pages_of("desktop")
    before = pages.read("metrics")
    pages.configure({"rack": "r8"}, "links", Gate())
    assert pages.read("metrics") == before
    pages.put(report("desktop"), CYCLE_INFO)
    assert pages.read("metrics") == page(report("desktop"), CYCLE_INFO, {"rack": "r8"}, "links")


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("9841", "give HOST:PORT"),
        ("127.0.0.1:", "give HOST:PORT"),
        ("127.0.0.1:http", "give HOST:PORT"),
        ("127.0.0.1:65536", "give HOST:PORT"),
        ("127.0.0.1:-1", "give HOST:PORT"),
        ("192.0.2.1:0", "not an address of this machine"),
        ("no-such-host.invalid:0", "not an address of this machine"),
        ("\udce4:0", "not a valid host name"),
    ],
)
def test_addresses_that_cannot_be_listened_on(listen: str, expected: str) -> None:
    with pytest.raises(BadInput, match=expected), serving(listen, pages_of()):
        pass


@given(st.text(max_size=20).filter(lambda text: not text.endswith(":0")))
def test_any_text_for_where_to_listen_is_refused_in_a_sentence(listen: str) -> None:
    with pytest.raises(BadInput, match="--listen"), serving(f"{listen}!", pages_of()):
        pass


def test_a_port_that_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(BadInput) as refused, serving(f"127.0.0.1:{port}", pages_of()):
            pass
    assert str(refused.value) == (
        f"--listen 127.0.0.1:{port}: port {port} is in use: stop the program that uses it ('ss -ltnp' names it), "
        "or choose another port"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_all_addresses(host: str) -> None:
    if host == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")

    class Here(NamedTuple):
        address: tuple[str, int]

    with serving(":0", pages_of()) as server:
        assert get(Here((host, server.address[1])), "/report").status == 200


def test_the_port_is_free_afterwards() -> None:
    with server_of() as server:
        get(server)
        address = f"127.0.0.1:{server.address[1]}"
    with serving(address, pages_of()) as again:
        assert get(again, "/healthz").status == 200


def test_several_requests_on_one_connection() -> None:
    import http.client

    with server_of() as server:
        connection = http.client.HTTPConnection(*server.address, timeout=30)
        for path in ("/healthz", "/metrics", "/nothing", "/healthz"):
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
        sock = connection.sock
        connection.close()
    assert answer.status == 200
    assert sock is not None


NARROW = "\n[device.gpu1]\nwidth = 8\n"
LISTED = ("pcie-link-narrow",)


@pytest.mark.parametrize(
    ("further", "verdict", "gate", "status", "begins"),
    [
        ("", "ok", Gate(enforce=True, codes=LISTED), 200, "open: ok"),
        (NARROW, "failed", Gate(), 200, "open; with enforce = true it would close for pcie-link-narrow 0000:1e:00.0"),
        (NARROW, "failed", Gate(enforce=True, codes=LISTED), 503, "closed for pcie-link-narrow 0000:1e:00.0"),
        (NARROW, "failed", Gate(enforce=True, codes=("gpu-missing",)), 200, "open: failed for pcie-link-narrow"),
        (
            "[device.nvme3]\nwidth = 2\n",
            "degraded",
            Gate(enforce=True, codes=LISTED),
            200,
            "open: degraded for storage",
        ),
        ("", "unknown", Gate(enforce=True, codes=LISTED), 200, "open, although the status of the node is unknown"),
        ("", "unknown", Gate(enforce=True, codes=LISTED, unknown="block"), 503, "closed for unknown node"),
    ],
)
def test_ready_follows_the_gate(further: str, verdict: Verdict, gate: Gate, status: int, begins: str) -> None:
    found = report_of(node("hgx-h100", further))
    pages = Pages(gate=gate, monotonic=Clock())
    pages.put(found if found.verdict == verdict else replace(found, verdict=verdict), CYCLE_INFO)
    got = reply(pages, Request("GET", "/ready"))
    assert (got.status, got.body.decode().startswith(begins)) == (status, True), got.body
    if status == 503:
        pages.put(found, CYCLE_INFO, disabled="/etc/linkgauge/gate.disabled exists")
        assert reply(pages, Request("GET", "/ready")).status == 200


@pytest.mark.parametrize(("unknown", "status"), [("allow", 200), ("block", 503)])
def test_a_service_without_a_cycle_is_ready_as_an_unknown_node(unknown: Literal["allow", "block"], status: int) -> None:
    clock = Clock()
    pages = Pages(gate=Gate(enforce=True, codes=LISTED, unknown=unknown), monotonic=clock)
    assert reply(pages, Request("GET", "/ready")).status == status
    pages.put(report("hgx-h100"), CYCLE_INFO)
    assert reply(pages, Request("GET", "/ready")).status == 200
    clock.now = 1000.0  # no cycle since
    assert reply(pages, Request("GET", "/ready")).status == status
