"""A line that says that a fault did not happen, or is over, gives no certain finding."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

AT = 1795230000.0
FAULTS = (
    "GPU has fallen off the bus",
    "Detected a miscompare failure in the L1 cache",
    "A corrupt InfoROM has been detected in GPU 3",
    "GPU 3 had uncorrectable memory errors and row remapping failed",
    "NVLink 7 of GPU 2 is down",
)


def severities(text: str) -> set[str]:
    report = evaluate(assemble(list(read_text("t.txt", f"{text}\n", AT)), Site(), AT, origin="dumps"))
    return {one.severity for one in report.findings}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_itself_is_found(fault: str) -> None:
    assert severities(fault) & {"critical", "warning"}
    assert severities(f"{fault}: yes") & {"critical", "warning"}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "form",
    [
        "{}: no",
        "{}: No.",
        "{}: none",
        "{}: false",
        "{} = 0",
        "{}: never",
        "{}: not found",
        "{} was not seen",
        "{}, not detected",
        "{} (fixed)",
        "{} - resolved",
        "{} was cleared",
        "| {} | no |",
        "no {}",
        "never {}",
        "without {}",
    ],
)
def test_a_negated_fault_is_none(form: str, fault: str) -> None:
    assert not severities(form.format(fault)) & {"critical", "warning"}


def test_the_count_of_another_thing_denies_nothing() -> None:
    assert "critical" in severities("NVRM: GPU 0000:65:00.0: GPU has fallen off the bus. Retries: 0")
    assert "critical" in severities("GPU 0 has fallen off the bus")


@pytest.mark.parametrize("fault", ["GPU has fallen off the bus", "NVLink 7 of GPU 2 is down"])
@pytest.mark.parametrize(
    "form",
    [
        "{}, not detected by nvidia-smi",
        "{} - not found any more",
        "{}, never seen again",
        "{} (not seen by the driver)",
    ],
)
def test_words_that_say_the_fault_again_deny_nothing(form: str, fault: str) -> None:
    assert severities(form.format(fault)) & {"critical", "warning"}
