"""The owners of the machine: Slurm's jobs by their cgroups, pods by the kubelet's checkpoint."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.probes.host.entries import Entry, Refused
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.system.scheduler_allocations import Unknown, allocations
from tests.support.nodes.trees import tree

CHECKPOINT = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
GIVEN = {
    "Data": {
        "PodDeviceEntries": [
            {"PodUID": "0b7c", "ResourceName": "nvidia.com/gpu", "DeviceIDs": {"0": ["GPU-1"]}},
            {"PodUID": "5d1f", "ResourceName": "rdma/hca", "DeviceIDs": {"-1": ["mlx5_0"]}},
        ],
        "RegisteredDevices": {"nvidia.com/gpu": ["GPU-1"]},
    },
    "Checksum": 1,
}
BOTH = {"kubernetes:0b7c": "pod 0b7c (nvidia.com/gpu)", "kubernetes:5d1f": "pod 5d1f (rdma/hca)"}


@pytest.mark.parametrize(
    "place",
    [
        "sys/fs/cgroup/system.slice/slurmstepd.scope/job_12/step_0/user/task_0/cgroup.procs",
        "sys/fs/cgroup/system.slice/n007_slurmstepd.scope/job_12/cgroup.procs",
        "sys/fs/cgroup/freezer/slurm/uid_1000/job_12/cgroup.procs",
        "sys/fs/cgroup/memory/slurm_n007/uid_1000/job_12/memory.usage_in_bytes",
    ],
)
def test_jobs_of_slurm(place: str) -> None:
    assert allocations(tree({place: "0"})) == {"slurm:12": "Slurm job 12"}


def test_slurm_without_jobs() -> None:
    host = tree({"sys/fs/cgroup/system.slice/slurmstepd.scope/system/cgroup.procs": "", "proc/9/comm": "slurmd"})
    assert allocations(host) == {}


def test_a_job_that_this_process_is_part_of_is_its_own() -> None:
    jobs = {f"sys/fs/cgroup/system.slice/slurmstepd.scope/job_{job}/cgroup.procs": "" for job in (12, 13)}
    own = "0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0"
    assert allocations(tree({**jobs, "proc/self/cgroup": own})) == {"slurm:13": "Slurm job 13"}


def test_devices_of_pods() -> None:
    host = tree({CHECKPOINT: json.dumps(GIVEN)})
    assert allocations(host) == BOTH
    assert list(allocations(host, "kubernetes:0b7c")) == ["kubernetes:5d1f"]
    assert allocations(tree({CHECKPOINT: '{"Data": {"PodDeviceEntries": null}, "Checksum": 1}'})) == {}


def test_pods_that_were_removed_have_nothing() -> None:
    """Their devices stay in the checkpoint."""
    given = {CHECKPOINT: json.dumps(GIVEN)}
    assert allocations(tree({**given, "var/lib/kubelet/pods/5d1f/etc-hosts": ""})) == {
        "kubernetes:5d1f": "pod 5d1f (rdma/hca)"
    }
    assert allocations(tree({**given, "var/lib/kubelet/pods/77aa/etc-hosts": ""})) == {}
    assert allocations(tree({**given, "var/lib/kubelet/pods": Refused(13, "Permission denied")})) == BOTH


def test_a_node_without_a_scheduler() -> None:
    assert allocations(Recorded(1000, {})) == {}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({CHECKPOINT: "{"}, f"{CHECKPOINT}: Input data was truncated"),
        ({CHECKPOINT: Refused(13, "Permission denied")}, f"{CHECKPOINT}: Permission denied"),
        (
            {"sys/fs/cgroup/kubepods.slice/cgroup.procs": ""},
            "pods run, but /var/lib/kubelet with their device allocations is not visible",
        ),
        (
            {"run/secrets/kubernetes.io/serviceaccount/namespace": "train"},
            "pods run, but /var/lib/kubelet with their device allocations is not visible",
        ),
    ],
)
def test_what_cannot_be_told(files: dict[str, Entry], why: str) -> None:
    host = tree(files)
    with pytest.raises(Unknown) as unknown:
        allocations(host)
    assert str(unknown.value) == why
    assert allocations(host, "kubernetes:0b7c") == {}


@given(st.text() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_any_checkpoint_is_read_or_refused(text: str) -> None:
    with suppress(Unknown):
        assert isinstance(allocations(Recorded(1000, {CHECKPOINT: text})), dict)
