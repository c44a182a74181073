"""Faults of arrays, disks and limits of memory that people state, and sentences and outputs that state none."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

DISK = ("storage-degraded", "critical", "nvme{n}")
LIMIT = ("memlock-low", "critical", "node")


@pytest.mark.parametrize(
    "text",
    [
        "After a reboot the culprit was nvme{n} failing to initialize -- the log shows controller reset failures.",
        "nvme{n} controller reset (CSTS=0x1)",
        "The NVMe disk nvme{n} does not come ready after a warm reboot",
        "nvme{n}: controller reset failed, it is stuck in D3cold",
    ],
)
def test_a_disk_that_does_not_start(text: str) -> None:
    for number in (0, 3, 14):
        expected = (*DISK[:2], DISK[2].format(n=number))
        assert found_in(text.format(n=number) + "\n") == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "If nvme{n} fails to initialize, update its firmware.",
        "What does it mean when nvme{n} fails to initialize?",
        "nvme{n} failed to initialize; fixed by a firmware update",
        "nvme{n} initializes within 2 seconds after each reset",
    ],
)
def test_a_disk_that_starts(text: str) -> None:
    for number in (0, 3, 14):
        assert found_in(text.format(n=number) + "\n") == []


@pytest.mark.parametrize("kind", ["lockable memory", "locked memory", "locked-memory"])
@pytest.mark.parametrize("size", ["64 kB", "128MB", "8 MiB"])
def test_a_limit_of_locked_memory(kind: str, size: str) -> None:
    assert found_in(f"{size} of {kind} gives a hang when the test gets to 4MB messages.\n") == [LIMIT]
    assert found_in(f"The job has {size} of {kind}, 512GB is the size of the machine\n") == [LIMIT]
    assert found_in(f"If there is only {size} of {kind}, the benchmark hangs.\n") == []
    assert found_in(f"The {kind} was {size}; after we raised it the job works.\n") == []


def test_sizes_of_messages_are_no_memory_of_the_machine() -> None:
    for size in (1, 4, 16):
        text = f"It runs with the default buffer memory of {size}MB, but messages of {size * 32}MB need more memory."
        assert found_in(text + "\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "Specifically, how does the term degraded appear in the status of md{n}?",
        "Also, what will mdadm show if md{n} is degraded?",
        "What is shown then?If a disk is offline: how will the array md{n} reflect the missing disk?",
        "And how do I see that md{n} lost a member?",
    ],
)
def test_questions_about_arrays(text: str) -> None:
    for number in (0, 5, 127):
        assert found_in(text.format(n=number) + "\n") == []


MDSTAT = (
    "{head}Personalities : [raid1] md125 : inactive nvme2n1[0](S) 1105 blocks super external:imsm "
    "md{n} : active raid1 nvme0n1[1] nvme1n1[0]{mark} 890806272 blocks super external:/md127/0 {state} "
    "md127 : inactive nvme1n1[1](S) nvme0n1[0](S) 10402 blocks super external:imsm unused devices: <none>{end}\n"
)


@pytest.mark.parametrize("head", ["", "# cat /proc/mdstat ", "Output: "])
@pytest.mark.parametrize("end", ["", "mdadm --detail /dev/md126"])
def test_an_mdstat_without_line_ends(head: str, end: str) -> None:
    for number in (0, 126):
        sound = MDSTAT.format(head=head, n=number, mark="", state="[2/2] [UU]", end=end)
        broken = MDSTAT.format(head=head, n=number, mark="(F)", state="[2/1] [U_]", end=end)
        assert found_in(sound) == []
        assert found_in(broken) == [("storage-degraded", "critical", f"md{number}")]
    assert report_of(MDSTAT.format(head="", n=1, mark="", state="[2/2] [UU]", end="")).verdict == "ok"


@pytest.mark.parametrize("program", ["ERROR: ", "SystemError: (Fatal) ", "2026-11-02 10:00:00 ERROR "])
def test_a_worker_of_paddle_without_shared_memory(program: str) -> None:
    text = f"{program}Unexpected BUS error encountered in DataLoader worker. This might be caused by insufficient"
    assert found_in(f"{text} shared memory (shm)\n") == [("shm-small", "critical", "node")]
