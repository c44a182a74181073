"""States of file systems on many machines in the outputs of their tools."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

CEPH = (
    "  cluster:\n    id:     0a1b\n    health: {health}\n{why}\n  services:\n    mon: 3 daemons, quorum a,b,c\n"
    "    osd: {most} osds: {up} up (since 2h), {most} in (since 9d)\n  data:\n    pgs:     513 active+clean\n"
)
DEGRADED = ("storage-degraded", "critical", "node")
REASONS = (
    ("{n} osds down", DEGRADED),
    ("{n} hosts ({n} osds) down", DEGRADED),
    ("Reduced data availability: {n} pgs inactive, 4 pgs down", DEGRADED),
    ("Degraded data redundancy: {n}/54098 objects degraded (4.420%), 31 pgs degraded, 40 pgs undersized", DEGRADED),
    ("Possible data damage: {n} pgs inconsistent", DEGRADED),
    ("1/3 mons down, quorum a,b", DEGRADED),
    (
        "{n} slow ops, oldest one blocked for 7472 sec, daemons [osd.4,osd.7] have slow ops.",
        ("storage-slow", "warning", "node"),
    ),
    ("{n} MDSs report slow metadata IOs", ("storage-slow", "warning", "node")),
    ("{n} nearfull osd(s)", ("storage-full", "warning", "node")),
    ("{n} pool(s) full", ("storage-full", "warning", "node")),
)


@pytest.mark.parametrize("frame", ["{}", "[WRN] OSD_X: {}", "            {}"])
@pytest.mark.parametrize(("why", "finding"), REASONS)
def test_a_sick_ceph_cluster(why: str, finding: tuple[str, str, str], frame: str) -> None:
    for number in (2, 17, 998):
        text = CEPH.format(health="HEALTH_WARN", why=frame.format(why.format(n=number)), up=400, most=512)
        assert found_in(text) == [finding]


def test_a_healthy_cluster_and_one_with_an_unknown_warning() -> None:
    for number in (3, 24, 512):
        assert found_in(CEPH.format(health="HEALTH_OK", why="", up=number, most=number)) == []
        text = CEPH.format(health="HEALTH_WARN", why="            noout flag(s) set", up=number, most=number)
        assert found_in(text) == [("not-enough-evidence", "info", "node")]
        assert report_of(text).verdict == "unknown"
    before = CEPH.format(health="HEALTH_WARN", why="            2 osds down", up=3, most=5)
    after = CEPH.format(health="HEALTH_OK", why="", up=5, most=5)
    assert [one.severity for one in report_of(before + "\n" + after).findings] == ["info"]


@pytest.mark.parametrize(
    ("sick", "healthy"),
    [
        ("OST00{n:02x}             : inactive device\n", "scratch-OST00{n:02x}_UUID   7.0T  2.1T  4.9T /scratch\n"),
        (
            "lfs-OST00{n:02x}-osc-ffff9c0f check error: Resource temporarily unavailable\n",
            "lfs-OST00{n:02x}-osc-ffff9c0f active.\n",
        ),
        ("import: x{n}\n    current_state: EVICTED\n", "import: x{n}\n    current_state: FULL\n"),
        ("     {n}      gpu7     2        3       8       down\n", "     {n}   gpu7   2   3   8   active\n"),
        ("nsd_{n} nsd  512  12 Yes Yes  ready  down  system\n", "nsd_{n} nsd  512  12 Yes Yes  ready  up  system\n"),
        ("DISK       FAILED       {n} days ago    disk_down(nsd7)\n", "DISK       HEALTHY      {n} days ago    -\n"),
        ("    {n}     Offline         Needs-resync      12\n", "    {n}     Online          Good      12\n"),
        ("Brick n{n}:/data/b1     N/A       N/A        N       N/A\n", "Brick n{n}:/data/b1   49152   0   Y   4711\n"),
        ("  node{n} connection:StandAlone\n", "  node{n} connection:Connected\n"),
        (
            " {n}: cs:WFConnection ro:Primary/Unknown ds:UpToDate/DUnknown C r-----\n",
            " {n}: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----\n",
        ),
    ],
)  # fmt: skip
def test_other_file_systems(sick: str, healthy: str) -> None:
    for number in (3, 17, 64):
        assert found_in(sick.format(n=number)) == [DEGRADED]
        assert found_in(healthy.format(n=number)) == []


@pytest.mark.parametrize(
    ("sick", "healthy"),
    [
        ("  WARNING: VG vg{n} is missing PV Ab12Cd-1111-2222-3333-4444.\n", "  PV Ab12Cd-1111 VG vg{n} lvm2 a--\n"),
        ("  Couldn't find device with uuid Ab12Cd-1111-2222-33{n}.\n", "  Found device with uuid Ab12Cd-11{n}.\n"),
        ("  lv{n} vg0  rwi-aor-p- 10.00t  100.00\n", "  lv{n} vg0  rwi-aor--- 10.00t  100.00\n"),
        ("  lv{n} vg0  Rwi-a-r-r- 10.00t  100.00\n", "  lv{n} vg0  -wi-ao---- 10.00t\n"),
        ("\tTotal devices {n}\n\t*** Some devices missing\n", "\tTotal devices {n} FS bytes used 1.20TiB\n"),
        ("\tdevid    {n} size 3TiB used 1TiB path  MISSING\n", "\tdevid    {n} size 3TiB used 1TiB path /dev/sdb\n"),
        (
            "       0       8        1        0      active sync\n       -       0        0        {n}      removed\n",
            "       1       8       17        {n}      active sync\n",
        ),
        (
            " Node number  Node name  GPFS state\n-------------\n   {n}    gpu7    down\n",
            " Node number  Node name  GPFS state\n-------------\n   {n}    gpu7    active\n",
        ),
        (" Node number  Node name  GPFS state\n   {n}    gpu7    unknown\n", " Node number  Node name  GPFS state\n"),
        ("lfs-OST00{n:02x}-osc-ffff9c0f inactive.\n", "   {n}    eth0    down\n"),
    ],
)
def test_disks_of_volumes_and_other_states(sick: str, healthy: str) -> None:
    for number in (1, 3, 17):
        assert found_in(sick.format(n=number)) == [DEGRADED]
        assert [one for one in found_in(healthy.format(n=number)) if one[0].startswith("storage")] == []


@pytest.mark.parametrize(
    "text",
    [
        "What happens if 3 osds down?\n",
        "no osds down\n",
        "0 osds down\n",
        "noout keeps data in place when 2 osds down.\n",
    ],
)
def test_texts_without_such_a_fault(text: str) -> None:
    assert found_in(text) == []


@pytest.mark.parametrize("words", ["How do we get back to HEALTH_OK?", "Goal: HEALTH_OK", "It was HEALTH_OK in May."])
def test_words_about_health_end_no_fault(words: str) -> None:
    for number in (2, 17):
        text = CEPH.format(health="HEALTH_ERR", why=f"            {number} osds down", up=3, most=20)
        assert found_in(f"{text}\n{words}\n") == [DEGRADED]


@pytest.mark.parametrize("end", ["  HEALTH_OK", "[INF] Cluster is now healthy", "[INF] overall HEALTH_OK"])
def test_a_healthy_cluster_ends_its_faults(end: str) -> None:
    for number in (2, 17):
        assert [one.severity for one in report_of(f"{number} osds down\n{end}\n").findings] == ["info"]


def test_a_check_that_passes_again_ends_its_fault_alone() -> None:
    for number in (1, 3, 17):
        cleared = f"Health check cleared: OSD_DOWN (was: {number} osds down)\n"
        failed = f"Health check failed: {number} osds down (OSD_DOWN)\n"
        assert found_in(cleared) == []
        assert [one.severity for one in report_of(failed + cleared).findings] == ["info"]
        assert found_in("1/3 mons down, quorum a,b\n" + failed + cleared)[0] == DEGRADED


@pytest.mark.parametrize(
    "text",
    [
        "NFS  FAILED\n",
        "Jenkins: SERVER    FAILED   unit tests\n",
        "curl: connection:Timeout\n",
        "db connection:StandAlone\n",
        "mode cs:StandAlone\n",
        "circuit breaker current_state: CLOSED\n",
        "boot disk:Failed\n",
        "{n} filesystems are offline for planned maintenance\n",
        "{n} filesystems are offline\n",
        "{n} web3 down\n",
        "  {n}   web3   down\n",
    ],
)
def test_lines_of_other_programs(text: str) -> None:
    for number in (2, 7, 19):
        assert found_in(text.format(n=number)) == []


@pytest.mark.parametrize(
    "text",
    [
        "import:\n    name: lfs-OST00{n:02x}-osc\n    current_state: CLOSED\n",
        "osc.lfs-OST00{n:02x}-osc-ffff9c0f.import=\n    current_state: CONNECTING\n",
        "r{n} role:Primary\n  disk:UpToDate\n  node2 connection:Connecting\n",
        "r{n} role:Secondary\n  disk:Failed\n",
        "[ERR] MDS_ALL_DOWN: {n} filesystem is offline\n",
        "Health check failed: {n} filesystem is degraded (FS_DEGRADED)\n",
        "health: HEALTH_WARN\n  {n} filesystems are degraded\n",
        "NFS     FAILED     Now      nfs_down({n})\n",
    ],
)
def test_states_beside_words_of_their_tools(text: str) -> None:
    for number in (1, 7, 19):
        assert found_in(text.format(n=number)) == [DEGRADED]


@pytest.mark.parametrize(
    "text",
    [
        "We had {n} osds down last week; all of them are back since Monday.",
        "If {n} osds down, the cluster stops.",
        "As soon as an admin sees {n} osds down, the runbook applies.",
        'The documentation of Ceph lists "Possible data damage: {n} pg inconsistent" as a health message.',
        "The wiki explains what Reduced data availability: {n} pgs inactive means for the users.",
        'What does "*** Some devices missing" of Btrfs mean for us?',
    ],
)
def test_sentences_that_state_no_fault(text: str) -> None:
    for number in (2, 7, 19):
        assert found_in(text.format(n=number) + "\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "Since the update the cluster has {n} osds down and it is slow.",
        'Today ceph -s shows us "Possible data damage: {n} pgs inconsistent".',
        "Why does it say {n} osds down after the reboot of the host?",
    ],
)
def test_sentences_that_state_a_fault(text: str) -> None:
    for number in (2, 7, 19):
        assert found_in(text.format(n=number) + "\n") == [DEGRADED]


SYNCING = (
    "r0 role:Primary\n  disk:UpToDate\n  node{n} role:Secondary\n"
    "    replication:SyncSource peer-disk:Inconsistent done:{n}.40\n",
    "r0 role:Secondary\n  disk:Inconsistent\n  node{n} role:Primary\n"
    "    replication:SyncTarget peer-disk:UpToDate done:{n}.40\n",
    " {n}: cs:SyncTarget ro:Secondary/Primary ds:Inconsistent/UpToDate C r-----\n",
    " {n}: cs:PausedSyncT ro:Secondary/Primary ds:Inconsistent/UpToDate C r-----\n",
)


@pytest.mark.parametrize("text", SYNCING)
def test_drbd_that_copies_is_no_fault(text: str) -> None:
    for number in (1, 12, 64):
        assert found_in(text.format(n=number)) == [("storage-degraded", "info", "node")]
        assert found_in(text.format(n=number).replace("Inconsistent", "Failed")) == (
            [("storage-degraded", "info", "node")] if "peer-disk:I" in text else [DEGRADED]
        )


@pytest.mark.parametrize(
    "text",
    [
        "r{n} role:Secondary\n  disk:Inconsistent\n  peer role:Primary\n",
        " {n}: cs:Connected ro:Secondary/Primary ds:Inconsistent/UpToDate C r-----\n",
    ],
)
def test_drbd_with_old_data_and_no_copying(text: str) -> None:
    for number in (1, 12, 64):
        assert found_in(text.format(n=number)) == [DEGRADED]


@pytest.mark.parametrize(
    ("sick", "healthy"),
    [
        ("{n} ssd 1.00000 osd.{n} down 1.00000 1.00000\n", "{n} ssd 1.00000 osd.{n} up 1.00000 1.00000\n"),
        ("    osd.{n} is down\n", "If osd.{n} is down, the cluster copies its data.\n"),
        ("osd.{n} (root=default,host=s{n}) is down\n", "osd.{n} is up\n"),
        ("pg 2.{n} is stuck undersized for 5m\n", "pg 2.{n} is active+clean\n"),
        ("   {n}  259   2   1   faulty   /dev/nvme{n}n1p1\n", "   {n}  259   2   1   active sync   /dev/nvme{n}n1p1\n"),
        ("  lv{n} vg0 -wi-----p- 10.00t\n", "  lv{n} vg0 -wi------- 10.00t\n"),
        ("  vg{n}   4   1   0 wz-pn- 14.00t 3.00t\n", "  vg{n}   4   1   0 wz--n- 14.00t 3.00t\n"),
        (
            " Node number  Node name  GPFS state\n   {n}    gpu7    arbitrating\n",
            " Node number  Node name  GPFS state\n   {n}    gpu7    active\n",
        ),
        (
            " Node number  Node name  Quorum  Nodes up  GPFS state\n   {n}   gpu7   2   0   8   arbitrating\n",
            "   {n}   gpu7   2   3   8   active\n",
        ),
    ],
)  # fmt: skip
def test_other_spellings(sick: str, healthy: str) -> None:
    for number in (1, 3, 17):
        assert found_in(sick.format(n=number)) == [DEGRADED]
        assert [one for one in found_in(healthy.format(n=number)) if one[0].startswith("storage")] == []
