"""Messages of drivers without what the driver writes before them: alone on a line, and quoted in a sentence."""

from __future__ import annotations

import pytest

from linkgauge.models.catalog.log_messages import KERNEL, Message, entries, message, quoted
from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from linkgauge.probes.kernel_log.messages import catalog
from linkgauge.probes.kernel_log.quoted import find_quoted

ROWS = [row for name in sorted({entry.name for entry in entries(*KERNEL)}) if (row := message(name)).prefix]
AT = 1767225600.0
STATED = (
    "{}",
    "dmesg shows `{}` every 10 s.",
    'The only line that it prints is "{}", and the job waits.',
    "> {}",
    "GPU 3 died at 05:18: `{}` -> the node needs a reboot",
    "Found in the log: {}",
)
NOT_STATED = (
    "If dmesg shows `{}`, reseat the card and try again.",
    "The wiki explains what `{}` stands for in the log.",
    "There is no `{}` in the log of the node.",
    "We had `{}` in the log, and a new riser fixed it for us.",
)


def short(row: Message) -> str:
    """The example of a row without what the driver writes before it."""
    pattern = quoted(row.name)
    assert pattern
    found = pattern.search(row.example)
    assert found
    return row.example[found.start() :]


def names(text: str) -> set[tuple[str, str]]:
    return {(one.name, one.subject) for one in find_quoted(text, catalog(*KERNEL), [])}


def test_there_are_many() -> None:
    assert len(ROWS) >= 100


@pytest.mark.parametrize("frame", STATED)
def test_stated(frame: str) -> None:
    missing = [row.name for row in ROWS if row.name not in {name for name, _ in names(frame.format(short(row)))}]
    assert missing == []


@pytest.mark.parametrize("frame", NOT_STATED)
def test_not_stated(frame: str) -> None:
    plain = [row for row in ROWS if "`" not in short(row)]  # its own marks end the quote
    assert [row.name for row in plain if names(frame.format(short(row)))] == []


def test_belongs_to_its_row_alone() -> None:
    several = {row.name: found for row in ROWS if len(found := names(short(row))) > 1}
    assert several == {}


def test_the_sentence_names_the_device() -> None:
    assert names("GPU 3 is dead: `GPU reset end with ret = -62`.") == {("amdgpu-reset-failed", "gpu3")}
    said = "0000:0b:00.0 is dead after `GPU reset end with ret = -62`."
    assert names(said) == {("amdgpu-reset-failed", "0000:0b:00.0")}


@pytest.mark.parametrize(
    "line",
    [
        "I searched for `device lost from bus` and found nothing.",
        "After the new BIOS, `GPU reset end with ret = -62` does not come any more.",
        "`device lost from bus` is gone since the new riser.",
        'Is "Trigger reset is on" harmless?',
        'Look in your logs for "Detected Tx Unit Hang" and report back.',
        "| `Fatal error during GPU init` | the driver did not start the GPU |",
        '## Runbook: "Admin queue is closed"',
        "### Slot(12): No link",
        'dev_err(adev->dev, "PSP firmware loading failed\\n");',
        'Subject: [PATCH] drm/amdgpu: print "device lost from bus" once',
        'Fixes: 1a2b3c4d ("drm/amdgpu: Fatal error during GPU init on APU")',
        "- 2.3: map `GPU reset begin` to a warning",
        'PATTERNS = ["device lost from bus", "another text"]',
        '{"type":"permanent","message":"device lost from bus"}',
        "storcli: Admin queue is closed",
        "virtio_net virtio0 eth0: Keep alive watchdog timeout",
    ],
)
def test_documents_and_source_code(line: str) -> None:
    assert names(line) == set()


@pytest.mark.parametrize(
    "line",
    [
        "The node logs `GPU reset end with ret = -62` and nothing works.",
        "We read `Admin queue is closed`; the NIC cannot be used.",
        "9 osds down since Monday, we replaced a fan on Sunday.",
        "PCIe 4.0 x16 gives 32 GB/s but I get 3 GB/s and it should be 30.",
    ],
)
def test_a_line_that_is_not_understood_is_not_ok(line: str) -> None:
    healthy = (
        "17:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
        "\tLnkCap: Port #0, Speed 32GT/s, Width x16\n\tLnkSta: Speed 32GT/s, Width x16\n\n"
    )
    verdicts = [
        evaluate(assemble(list(read_text("note.txt", healthy + more, AT)), Site(), AT, origin="dumps")).verdict
        for more in ("All jobs run.\n", f"{line}\n")
    ]
    assert verdicts == ["ok", "unknown"]
