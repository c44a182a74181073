"""NCCL's log as the table of ranks of a job."""

from __future__ import annotations

from linkgauge.models.jobs.log import JobLog
from linkgauge.models.jobs.placement import Place, Row, Unit, places_of
from linkgauge.probes.jobs.rank_log import read_ranks

LOG = """\
a:71:90 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 3 nranks 4 cudaDev 0 nvmlDev 6 busId b000 commId 0x9 - Init START
a:71:91 [0] NCCL INFO Channel 00/0 : 3[6] -> 0[1] [send] via NET/IB/5/GDRDMA
a:71:91 [0] NCCL INFO Channel 01/0 : 3[6] -> 0[1] [send] via NET/IB/5/GDRDMA/Shared
a:71:91 [0] NCCL INFO Channel 02/0 : 3[6] -> 1[2] [send] via NET/IB/2(1)/GDRDMA
a:71:90 [0] NCCL INFO ncclCommSplit comm 0x6 rank 0 nranks 2 cudaDev 0 nvmlDev 6 busId b000 commId 0x8 - Init COMPLETE
2026-01-02 10:00:00 b-1:72:90 [1] NCCL INFO comm 0x5 rank 0 nranks 4 cudaDev 1 busId c000 - Init COMPLETE
c:73:90 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 1 nranks 4 cudaDev 0 nvmlDev 0 busId 1 commId 0x9 - Init COMPLETE
c:73:90 [1] NCCL INFO ncclCommInitRank comm 0x7 rank 2 nranks 4 cudaDev 1 nvmlDev 1 busId 2 commId 0x9 - Init COMPLETE
c:73 NCCL INFO rank
"""


def test_gpu_and_nic_of_each_process() -> None:
    """A NIC in brackets is that of another rank. A process with two GPUs does not tell which rank has which."""
    assert read_ranks(LOG.splitlines()) == (
        Row(3, "a", 6, 5, process="pid 71"),
        Row(0, "b-1", 1, None, process="pid 72"),
    )


def test_places_of_processes_whose_host_has_a_domain() -> None:
    log = JobLog()
    found = log.communicator_of("x", 2, 2, None)
    assert found
    log.member_of(found, 0, "a.example.org", "pid 71")
    log.member_of(found, 1, "d.example.org", "pid 5")
    assert places_of(log, read_ranks(LOG.splitlines())) == {
        Unit("a.example.org", "pid 71", 0): Place("a.example.org", 6, 5),
        Unit("d.example.org", "pid 5", 0): Place("d.example.org", 0, 0),
    }


def test_any_text_is_read() -> None:
    assert read_ranks(["", "\x00", " NCCL INFO ", "a:1:1 [0] NCCL INFO rank 99999999999999 nranks x"]) == ()
