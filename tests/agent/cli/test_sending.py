"""Metrics of a single report: the textfile, a Pushgateway, OTLP; and the warning if a receiver refuses them."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from prometheus_client.parser import text_string_to_metric_families as parse

from linkgauge.agent.cli.main import main
from linkgauge.agent.state.atomic_write import write_atomically
from linkgauge.exporters.metrics.catalog import METRICS
from linkgauge.probes.host.recorded import dump
from tests.support.nodes.described import node
from tests.support.peers.http_receiver import receiver
from tests.support.peers.prometheus_server import free_port, prometheus

SITE = '[labels]\nrack = "r7"\n'


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("capture")
    (folder / "site.toml").write_text(SITE)
    path = folder / "hgx.capture"
    path.write_text(dump(node("hgx-h100")))
    return str(path)


def diagnose(capture: str, *arguments: str) -> Result:
    site = str(Path(capture).parent / "site.toml")
    return CliRunner().invoke(main, ["diagnose", "--from", capture, "--site", site, *arguments])


def names(text: str) -> set[str]:
    return {sample.name for family in parse(text) for sample in family.samples}


def test_a_textfile(capture: str, tmp_path: Path) -> None:
    path = tmp_path / "linkgauge.prom"
    path.write_text("old")
    done = diagnose(capture, "--format", "prometheus", "--output", str(path))
    assert (done.exit_code, done.output) == (0, "")
    assert os.listdir(tmp_path) == ["linkgauge.prom"]
    assert path.stat().st_mode & 0o777 == 0o644
    text = path.read_text()
    assert 'linkgauge_node_info{node="hgx",profile="hgx-h100-8",rack="r7"} 1.0' in text
    assert "linkgauge_cycle_timestamp_seconds 1.79523e+09" in text
    printed = diagnose(capture, "--format", "prometheus").output
    assert names(printed) == names(text) <= set(METRICS)


def test_a_folder_that_is_not_there(capture: str, tmp_path: Path) -> None:
    done = diagnose(capture, "--format", "prometheus", "-o", str(tmp_path / "none" / "x.prom"))
    assert done.exit_code == 64
    assert done.stderr.strip().endswith("x.prom: No such file or directory")


def test_a_link_leads_to_the_file_and_a_pipe_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_atomically(str(tmp_path / "link"), b"first")
    write_atomically(str(tmp_path / "link"), b"second")
    assert (tmp_path / "file").read_bytes() == b"second"
    assert (tmp_path / "link").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    thread = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    thread.start()
    write_atomically(str(tmp_path / "pipe"), b"through")
    thread.join()
    assert read == [b"through"]
    assert sorted(os.listdir(tmp_path)) == ["file", "link", "pipe"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to create a link of another user")
def test_no_link_of_another_user_is_followed_in_a_shared_folder(tmp_path: Path) -> None:
    """Before, `--output /tmp/x.prom` of root replaced any file to which another user had linked this name.

    The kernel refuses to open such a link (fs.protected_symlinks), but the file was replaced by a rename.
    """
    (shared := tmp_path / "shared").mkdir()
    shared.chmod(0o1777)
    (tmp_path / "victim").write_text("of root")
    for name, owner in (("other", 65534), ("own", 0)):
        (shared / name).symlink_to("../victim")
        os.lchown(shared / name, owner, owner)
    (tmp_path / "to-other").symlink_to("shared/other")
    for path in (shared / "other", tmp_path / "to-other"):
        with pytest.raises(PermissionError, match="a symbolic link of another user"):
            write_atomically(str(path), b"forged")
    assert (tmp_path / "victim").read_text() == "of root"
    write_atomically(str(shared / "own"), b"written")
    assert (tmp_path / "victim").read_text() == "written"


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to("x")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        write_atomically(str(tmp_path / "x"), b"")


def test_a_reader_during_a_write_sees_one_complete_file(tmp_path: Path) -> None:
    path, contents = tmp_path / "x", [bytes([number]) * 100_000 for number in range(200)]
    path.write_bytes(contents[0])
    seen: list[bytes] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.append(path.read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    for content in contents:
        write_atomically(str(path), content)
    done.set()
    thread.join()
    assert set(seen) <= set(contents)


def test_a_push(capture: str) -> None:
    with receiver() as (url, taken):
        done = diagnose(capture, "--push", url)
    assert (done.exit_code, done.stderr) == (0, "")
    (request,) = taken
    assert (request.method, request.path) == ("PUT", "/metrics/job/linkgauge/instance/hgx")
    assert 'rack="r7"' in request.body.decode()
    assert done.output.startswith("OK  hgx")  # the report is the same as without the option


@pytest.mark.skipif(
    not (shutil.which("prometheus-pushgateway") and shutil.which("prometheus")),
    reason="prometheus and prometheus-pushgateway are not installed",
)
def test_a_real_pushgateway(capture: str, tmp_path: Path) -> None:
    port = free_port()
    command = ["prometheus-pushgateway", f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as gateway:
        try:
            with prometheus(tmp_path, {"gateway": port}) as server:
                server.wait('up{job="gateway"} == 1')
                assert diagnose(capture, "--push", f"http://127.0.0.1:{port}/").stderr == ""
                found = server.wait('linkgauge_verdict{verdict="ok"} == 1')
        finally:
            gateway.kill()
    assert found == {"exported_instance=hgx,exported_job=linkgauge,job=gateway,verdict=ok": 1.0}


def test_over_otlp(capture: str) -> None:
    service = pytest.importorskip(
        "opentelemetry.proto.collector.metrics.v1.metrics_service_pb2", reason="the extra [otlp] is not installed"
    )
    with receiver() as (url, taken):
        done = diagnose(capture, "--otlp", f"{url}/v1/metrics")
    assert (done.exit_code, done.stderr) == (0, "")
    (request,) = taken
    assert request.path == "/v1/metrics"
    (resource,) = service.ExportMetricsServiceRequest.FromString(request.body).resource_metrics
    about = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert {"service.name": "linkgauge", "host.name": "hgx", "rack": "r7"}.items() <= about.items()
    metrics = {one.name: one for one in resource.scope_metrics[0].metrics}
    shown = {name.removesuffix("_total") for name in names(diagnose(capture, "--format", "prometheus").output)}
    assert metrics.keys() == shown
    traffic = metrics["linkgauge_link_traffic_bytes"]
    assert (traffic.unit, traffic.sum.is_monotonic, len(traffic.sum.data_points)) == ("By", True, 40)
    (point,) = metrics["linkgauge_cycle_timestamp_seconds"].gauge.data_points
    assert (point.as_double, point.time_unix_nano) == (1795230000.0, 1795230000 * 10**9)
    assert metrics["linkgauge_link_rated_bytes_per_second"].unit == "By/s"


@pytest.mark.parametrize("option", ["--push", "--otlp"])
def test_a_receiver_that_refuses_metrics_is_a_warning(capture: str, option: str) -> None:
    """A refused push does not change the verdict."""
    pytest.importorskip("opentelemetry", reason="the extra [otlp] is not installed")
    with receiver(status=400) as (url, _):
        refused = diagnose(capture, option, url)
    nobody = diagnose(capture, option, f"http://127.0.0.1:{free_port()}") if option == "--push" else refused
    for done in (refused, nobody):
        assert done.exit_code == 0
        assert done.stderr.startswith(f"Warning: {option} http://127.0.0.1:")
        assert ": the metrics were not accepted: " in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--push", "--otlp"])
@pytest.mark.parametrize("url", ["", "gateway:9091", "ftp://gateway", "/tmp/x"])
def test_what_is_no_address(capture: str, option: str, url: str) -> None:
    done = diagnose(capture, option, url)
    assert done.exit_code == 64
    assert f"{option} {url}: the address must begin with http:// or https://" in done.stderr


def test_odd_addresses_are_warnings(capture: str) -> None:
    for url in ("http://", "http://[", "http://a b/", "http://x:99999/"):
        done = diagnose(capture, "--push", url)
        assert (done.exit_code, done.stderr[:9]) == (0, "Warning: "), url
