"""Outputs within pages of the web and archives of mails."""

from __future__ import annotations

from html import escape

import pytest

from linkgauge.probes.dumps.core.clean import clean
from tests.support.texts import found_in

LINES = (
    "[   12.345678] md/raid1:md{n}: Disk failure on nvme1n1p2, disabling device.",
    "[   12.345680] md/raid1:md{n}: Operation continuing on <1> devices & more.",
    '[   12.345690] say "x" > y',
)
FRAMES = (
    "<pre>{}</pre>",
    "<p>{}<br>",
    "{}<br/>",
    '<div class="line"><span style="color:red">{}</span></div>',
    "<li><tt>{}</tt></li>",
    "<P>{}<BR>",
)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("number", [0, 3, 127])
def test_a_page_says_what_its_text_says(frame: str, number: int) -> None:
    lines = [line.format(n=number) for line in LINES]
    page = "\n".join(frame.format(escape(line)) for line in lines)
    assert clean(page) == "\n".join(lines)
    assert found_in(page) == [("storage-degraded", "critical", f"md{number}")]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<br>\n&nbsp;&nbsp;rate:5Gbps &lt; group:40Gbps", "\n  rate:5Gbps < group:40Gbps"),
        ("<p>&#36; cat &#x2f;proc/mdstat<br>", "$ cat /proc/mdstat"),
        ("<p>one&#10;two", "one two"),
        ("<tr><td>GPU 3</td><td>x8</td></tr>", "GPU 3  x8  "),
        ("<p>a &gt; &amp;lt; b", "a > &lt; b"),
    ],
)
def test_tags_and_entities(page: str, text: str) -> None:
    clean_text = clean(page)
    assert [line.strip() for line in clean_text.split("\n")] == [line.strip() for line in text.split("\n")]
    assert clean_text.count("\n") == page.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        '<gpu id="00000000:18:00.0">\n<product_name>NVIDIA &lt;H100&gt;</product_name>\n</gpu>',
        '<object type="PCIDev" name="a &amp; b">',
        "NCCL INFO comm 0x1 rank <0> <unknown>",
        "node1:4242:4242 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
    ],
)
def test_files_and_outputs_of_tools_stay_as_they_are(text: str) -> None:
    assert clean(text) == text
