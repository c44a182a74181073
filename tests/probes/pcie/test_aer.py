"""AER counters of different kernels: bits without a name, errors without a bit, and AER that the firmware handles."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from linkgauge.models.diagnosis.reevaluation import obstacles
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.records import NotChecked, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.entries import Folder
from linkgauge.probes.pcie.aer import SERVICES
from linkgauge.probes.pcie.links import read_pci_links
from linkgauge.probes.pcie.pci import read_pci
from tests.support.nodes.pci_machines import CARD, GPU, PORT, ROOT, Files, machine
from tests.support.nodes.trees import tree

LINK = {"current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16"}
NONE = "RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0"


def read(functions: Mapping[str, Files], services: list[str] | None) -> list[Record]:
    """The counters and what is not checked. `services`: names in the folder of services. None: no such folder."""
    folder = {} if services is None else {SERVICES: Folder(), **{f"{SERVICES}/{name}": Folder() for name in services}}
    files = {place: {**LINK, **own} for place, own in functions.items()}
    return [
        one for one in read_pci_links(tree({**machine(files), **folder})) if isinstance(one, Observation | NotChecked)
    ]


def counts(text: str, severity: str = "nonfatal") -> list[tuple[float, str]]:
    records = read({PORT: {}, CARD: {**GPU, f"aer_dev_{severity}": text}}, ["0000:16:01.0:pcie002"])
    return [(one.value, one.evidence.text) for one in records if isinstance(one, Observation)]


@pytest.mark.parametrize(
    ("severity", "text", "value", "shown"),
    [
        # Linux 5.2 to 5.16 (commits 0678e3109a3c and 5e6ae050955b): three retried BadTLPs, and no uncorrected error.
        ("nonfatal", "Undefined 0\nDLP 0\ndev_nonfatal_errs_bit[27] 3\nTOTAL_ERR_NONFATAL 0", 0, "no errors"),
        # The same kernels: an unsupported request (nonfatal) stands behind the table of fatal errors.
        ("fatal", "Undefined 0\nDLP 0\ndev_fatal_errs_bit[31] 4\nTOTAL_ERR_FATAL 0", 0, "no errors"),
        ("correctable", "RxErr 0\nBadTLP 3\ndev_cor_errs_bit[20] 1\nTOTAL_ERR_COR 3", 3, "BadTLP 3"),
        # A fatal error of an endpoint has no bit: the kernel does not read its registers.
        ("fatal", "Undefined 0\nDLP 0\nTOTAL_ERR_FATAL 1", 1, "not named by the kernel 1"),
        # One error with two bits.
        ("nonfatal", "DLP 0\nTLP 1\nMalfTLP 1\nTOTAL_ERR_NONFATAL 1", 2, "TLP 1, MalfTLP 1"),
        ("nonfatal", "DLP 0\nUnsupReq 12\nTOTAL_ERR_NONFATAL 12", 0, "no errors"),
    ],
)
def test_entries_without_a_name_are_compared_with_the_total(severity: str, text: str, value: float, shown: str) -> None:
    assert counts(text, severity) == [(value, shown)]


def unowned(subject: str) -> tuple[str, str]:
    return ("Pci.aer", subject)


def summary(records: list[Record]) -> list[tuple[str, str]]:
    return [
        (one.quantity, str(one.about)) if isinstance(one, Observation) else (one.what, one.subject)
        for one in records
        if isinstance(one, Observation | NotChecked)
    ]


ONE = {PORT: {"aer_dev_correctable": NONE}, CARD: {**GPU, "aer_dev_correctable": NONE}}
BOTH = [("aer_correctable", "0000:16:01.0"), ("aer_correctable", "0000:17:00.0")]


@pytest.mark.parametrize(
    ("services", "expected"),
    [
        (["0000:16:01.0:pcie002", "0000:16:01.0:pcie010"], BOTH),
        (["0000:16:01.0:pcie02"], BOTH),  # Linux 4.x prints two digits
        (None, BOTH),  # a capture without the folder
        ([], [unowned("node")]),  # pcie_ports=compat
        (["0000:16:01.0:pcie001", "0000:16:01.0:pcie004"], [unowned("node")]),  # pci=noaer, or firmware first
        (["0000:16:01.0:pcie202"], [unowned("node")]),  # AER of a switch port
    ],
)
def test_zeros_count_only_where_the_kernel_owns_aer(
    services: list[str] | None, expected: list[tuple[str, str]]
) -> None:
    assert summary(read(ONE, services)) == expected


def test_errors_that_the_firmware_passed_on_stay() -> None:
    functions = {PORT: {"aer_dev_correctable": NONE}, CARD: {**GPU, "aer_dev_correctable": "BadTLP 2\nTOTAL_ERR_COR 2"}}
    assert summary(read(functions, [])) == [("aer_correctable", "0000:17:00.0"), unowned("node")]


def test_one_root_port_of_two_is_the_firmwares() -> None:
    other = {f"{ROOT}/0000:16:02.0": {"aer_dev_correctable": NONE}, f"{ROOT}/0000:16:02.0/0000:18:00.0": GPU}
    assert summary(read({**ONE, **other}, ["0000:16:01.0:pcie002"])) == [*BOTH, unowned("0000:16:02.0")]


def test_other_findings_of_pcie_errors_clear_where_the_firmware_owns_aer() -> None:
    """The gap is permanent there. It must not keep a finding of the driver's replay counters for ever."""
    gpu = Gpu(key="gpu0", address="0000:17:00.0")
    finding = Finding(code="pcie-errors", severity="warning", subject="gpu0", message="4,000 replays in 60 s")
    records = [*read_pci(tree(machine(ONE))), *read(ONE, []), gpu]
    snapshot = assemble(records, Site(), 1.0)
    assert "Pci.aer" in {one.what for one in snapshot.not_checked}
    assert obstacles(snapshot, evaluate(snapshot), finding) == ()
