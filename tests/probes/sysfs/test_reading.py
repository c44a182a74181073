"""Files as fields of a fact: absent, required, refused, rubbish."""

from __future__ import annotations

import errno
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Net
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.probes.host.live import Live
from linkgauge.probes.parsing.parsers import count, flag, known, word
from linkgauge.probes.sysfs.fact_reader import FactReader, Parser
from tests.support.nodes.trees import write


def reading(root: Path) -> FactReader:
    return FactReader(Live(str(root)), Net, "eth0", "net/eth0")


def missed(field: str, detail: str, path: str | None, reason: Reason = Reason.UNREADABLE) -> NotChecked:
    return NotChecked(what=f"Net.{field}", subject="eth0", reason=reason, path=path, detail=detail)


def test_what_files_say(tmp_path: Path) -> None:
    write(tmp_path, {"net/eth0/mtu": "9000", "net/eth0/carrier": "1", "net/eth0/duplex": "full"})
    eth0 = reading(tmp_path)
    assert eth0.take("mtu", "mtu", count) == 9000
    assert eth0.take("carrier", "carrier", flag, required=True) is True
    assert eth0.take("duplex", "duplex") == "full"
    assert eth0.text("mtu") == "9000"
    assert eth0.absent == set()
    cites = {
        name: Evidence(f"net/eth0/{name}", text)
        for name, text in (("mtu", "9000"), ("carrier", "1"), ("duplex", "full"))
    }
    assert list(eth0.records()) == [Net(key="eth0", mtu=9000, carrier=True, duplex="full", cites=cites)]


def test_an_absent_file_is_missed_only_where_it_is_required(tmp_path: Path) -> None:
    eth0 = reading(tmp_path)
    assert eth0.take("mtu", "mtu", count) is None
    assert eth0.take("carrier", "carrier", flag, required=True) is None
    assert eth0.text("mtu") is None
    assert eth0.absent == {"mtu", "carrier"}
    assert list(eth0.records()) == [
        missed("carrier", "net/eth0/carrier is not there", None, Reason.NOT_INSTALLED),
        Net(key="eth0"),
    ]


def test_a_refused_file_is_missed_and_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path, {"net/eth0/speed/below": "", "net/eth0/mtu": "1500"})
    (tmp_path / "net/eth0/duplex").symlink_to("duplex")
    eth0 = reading(tmp_path)
    for field in ("speed", "duplex", "mtu"):
        eth0.take(field, field, count)
    assert eth0.text("speed") is None
    assert eth0.absent == set()
    assert list(eth0.records()) == [
        missed("speed", "Is a directory", "net/eth0/speed"),
        missed("duplex", "Too many levels of symbolic links", "net/eth0/duplex"),
        Net(key="eth0", mtu=1500, cites={"mtu": Evidence("net/eth0/mtu", "1500")}),
    ]


@pytest.mark.parametrize("required", [False, True])
def test_an_error_that_is_an_answer_is_not_missed(tmp_path: Path, required: bool) -> None:
    write(tmp_path, {"net/eth0/speed/below": ""})
    eth0 = reading(tmp_path)
    assert eth0.take("speed", "speed", count, required=required, means=errno.EISDIR) is None
    assert eth0.take("duplex", "speed", word, means=errno.EINVAL) is None
    assert eth0.absent == set()
    assert list(eth0.records()) == [missed("duplex", "Is a directory", "net/eth0/speed"), Net(key="eth0")]


def test_rubbish_is_missed_with_what_stood_there(tmp_path: Path) -> None:
    write(tmp_path, {"net/eth0/mtu": "many\x1b[2J"})
    eth0 = reading(tmp_path)
    assert eth0.take("mtu", "mtu", count) is None
    assert eth0.text("mtu") is None
    assert list(eth0.records()) == [
        missed("mtu", r"'many\x1b[2J' is not a number", "net/eth0/mtu"),
        Net(key="eth0"),
    ]


def test_a_text_that_says_not_known_is_read(tmp_path: Path) -> None:
    """None with the evidence that it was asked for."""
    write(tmp_path, {"net/eth0/dev_port": "-1"})
    eth0 = reading(tmp_path)
    assert eth0.take("port", "dev_port", known, required=True) is None
    assert eth0.text("port") == "-1"
    assert list(eth0.records()) == [Net(key="eth0", cites={"port": Evidence("net/eth0/dev_port", "-1")})]


def test_where_links_lead(tmp_path: Path) -> None:
    write(tmp_path, {"net/eth0/mtu": "1", "bus/drivers/mlx5_core/bind": "", "net/eth0/plain": ""})
    for link, target in {"driver": "/bus/drivers/mlx5_core", "dangling": "none", "loop": "loop", "top": "/"}.items():
        (tmp_path / "net/eth0" / link).symlink_to(target)
    eth0 = reading(tmp_path)
    eth0.set(driver=eth0.target("driver", "driver"), duplex=eth0.target("duplex", "none"))
    assert [eth0.target("address", name) for name in ("dangling", "loop", "top", "plain")] == [
        None,
        None,
        None,
        "plain",
    ]
    assert list(eth0.records()) == [
        missed("address", "Too many levels of symbolic links", "net/eth0/loop"),
        Net(key="eth0", driver="mlx5_core"),
    ]


def test_names_may_start_at_the_root(tmp_path: Path) -> None:
    write(tmp_path, {"mtu": "1500"})
    (tmp_path / "loop").symlink_to("loop")
    eth0 = FactReader(Live(str(tmp_path)), Net, "eth0", "")
    assert eth0.take("mtu", "mtu", count) == 1500
    assert eth0.target("driver", "mtu") == "mtu"
    assert eth0.target("driver", "loop") is None
    assert list(eth0.records()) == [
        missed("driver", "Too many levels of symbolic links", "loop"),
        Net(key="eth0", mtu=1500, cites={"mtu": Evidence("mtu", "1500")}),
    ]


@given(st.sampled_from([count, flag, known, word, str]), st.binary(max_size=100))
def test_any_bytes_are_read_or_missed(parse: Parser, content: bytes) -> None:
    with TemporaryDirectory() as root:
        (Path(root) / "mtu").write_bytes(content)
        eth0 = FactReader(Live(root), Net, "eth0", "")
        eth0.take("duplex", "mtu", parse)
        said: list[Record] = list(eth0.records())
    assert [type(one) for one in said] in ([Net], [NotChecked, Net])
    assert isinstance(said[-1], Net)
    assert ("duplex" in said[-1].cites) == (len(said) == 1)
    for one in said[:-1]:
        assert decode(encode(one)) == one
