"""The owners of the machine: Slurm's jobs by their cgroups, pods by their cgroups and the files of the kubelet."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.probes.host.entries import Entry, UnreadableFile
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.system.job_cgroups import AllocationsUnknown
from linkgauge.probes.system.scheduler_allocations import allocations
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
        "sys/fs/cgroup/freezer/slurm/uid_1000/job_12/step_extern/cgroup.procs",
        "sys/fs/cgroup/memory/slurm_n007/uid_1000/job_12/step_0/task_0/cgroup.procs",
        "sys/fs/cgroup/freezer/slurm/uid_1000/job_12/cgroup.procs",
    ],
)
def test_jobs_of_slurm_with_cgroup_v1(place: str) -> None:
    folder = place[: place.index("job_12") + len("job_12")]
    files = {f"{folder}/cgroup.procs": "", f"{folder}/memory.stat": "cache 0", place: "4711\n4712"}
    assert allocations(tree(files)) == {"slurm:12": "Slurm job 12"}
    assert allocations(tree({**files, place: ""})) == {}


@pytest.mark.parametrize("scope", ["slurmstepd.scope", "n007_slurmstepd.scope"])
def test_jobs_of_slurm_with_cgroup_v2(scope: str) -> None:
    """The kernel says whether processes live below a cgroup (admin-guide/cgroup-v2, cgroup.events)."""
    jobs = f"sys/fs/cgroup/system.slice/{scope}"
    files = {f"{jobs}/job_12/cgroup.procs": "", f"{jobs}/job_12/cgroup.events": "populated 1\nfrozen 0"}
    assert allocations(tree(files)) == {"slurm:12": "Slurm job 12"}


def test_a_cgroup_that_a_job_left_behind() -> None:
    """Slurm leaves empty cgroups of ended jobs after an error, and removes others at this moment."""
    jobs = "sys/fs/cgroup/system.slice/slurmstepd.scope"
    assert allocations(tree({f"{jobs}/job_12/cgroup.events": "populated 0\nfrozen 0"})) == {}
    assert allocations(tree({f"{jobs}/job_12/cgroup.events": UnreadableFile(19, "No such device")})) == {}
    with pytest.raises(AllocationsUnknown, match="Permission denied"):
        allocations(tree({f"{jobs}/job_12/cgroup.events": UnreadableFile(13, "Permission denied")}))


SLURM = {"sys/fs/cgroup/system.slice/slurmstepd.scope/system/cgroup.procs": "", "proc/9/comm": "slurmd"}


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"etc/slurm/slurm.conf": "ClusterName=a\nPrologFlags=Contain"},
        {"etc/slurm/slurm.conf": "# PrologFlags=Alloc\n  prologflags = Serial,X11 # since May"},
        {"etc/slurm/slurm.conf": "Include common.conf", "etc/slurm/common.conf": "PrologFlags=RunInJob"},
        {"run/slurm/conf/slurm.conf": "PrologFlags=contain,nohold"},
        {
            "etc/slurm/slurm.conf": "Prolog=/etc/slurm/prolog.d/*",
            "etc/slurm/prolog.d/50-linkgauge": "#!/bin/sh\n/usr/bin/linkgauge hold --for 24h",
        },
        {"etc/slurm/slurm.conf": "Prolog=first.sh", "etc/slurm/first.sh": "exec linkgauge hold --for=8h"},
    ],
)
def test_slurm_without_jobs(files: dict[str, Entry]) -> None:
    assert allocations(tree({**SLURM, **files})) == {}


@pytest.mark.parametrize(
    "files",
    [
        {"etc/slurm/slurm.conf": "ClusterName=a"},
        {"etc/slurm/slurm.conf": "PrologFlags=Alloc\nPrologSlurmctld=/x", "proc/9/cmdline": "slurmd"},
        {"etc/slurm/slurm.conf": "Include slurm.conf"},
        {"etc/slurm/slurm.conf": "Prolog=/opt/p", "opt/p": "#linkgauge hold --for 8h\nlinkgauge hold\nsleep --for 1"},
    ],
)
def test_jobs_without_a_step_show_nothing(files: dict[str, Entry]) -> None:
    """`salloc` without a step starts no process on the node (https://slurm.schedmd.com/slurm.conf.html#OPT_Contain)."""
    why = (
        "slurmd runs, but a job without a step shows no cgroup: slurm.conf has no PrologFlags=Contain, "
        "and no prolog runs 'linkgauge hold --for'"
    )
    with pytest.raises(AllocationsUnknown) as unknown:
        allocations(tree({**SLURM, **files}))
    assert str(unknown.value) == why
    assert allocations(tree({**SLURM, **files}), "slurm:12") == {}
    assert allocations(tree({**SLURM, **files, "proc/9/comm": "slurmctld"})) == {}
    job = {"sys/fs/cgroup/system.slice/slurmstepd.scope/job_12/cgroup.events": "populated 1"}
    assert allocations(tree({**SLURM, **files, **job})) == {"slurm:12": "Slurm job 12"}


def test_a_prolog_that_holds_needs_no_cgroups() -> None:
    files = {"proc/9/comm": "slurmd", "etc/slurm/slurm.conf": "Prolog=/opt/p", "opt/p": "linkgauge hold --for 24h"}
    assert allocations(tree(files)) == {}
    with pytest.raises(AllocationsUnknown, match="ProctrackType is not cgroup"):
        allocations(tree({**files, "opt/p": "linkgauge hold"}))


def test_a_job_that_this_process_is_part_of_is_its_own() -> None:
    jobs = {f"sys/fs/cgroup/system.slice/slurmstepd.scope/job_{job}/cgroup.procs": "17" for job in (12, 13)}
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
    assert allocations(tree({**given, "var/lib/kubelet/pods": UnreadableFile(13, "Permission denied")})) == BOTH


ONE, TWO, THREE = (f"3fb0{number}e7c-9d1c-4a41-8f7e-0d8f1b6c2a55" for number in range(3))


def checkpoint(*entries: tuple[str, str, object]) -> str:
    """As pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go of Kubernetes writes it."""
    given = [
        {"PodUID": uid, "ContainerName": "main", "ResourceName": name, "DeviceIDs": ids, "AllocResp": "CgA="}
        for uid, name, ids in entries
    ]
    return json.dumps({"Data": {"PodDeviceEntries": given, "RegisteredDevices": {}}, "Checksum": 1})


GPUS = checkpoint((ONE, "nvidia.com/gpu", {"0": ["GPU-1"]}), (TWO, "nvidia.com/gpu", {"1": ["GPU-2"]}))


@pytest.mark.parametrize(
    "place",
    [
        "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{_}.slice",
        "sys/fs/cgroup/kubepods.slice/kubepods-pod{_}.slice",
        "sys/fs/cgroup/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{_}.slice",
        "sys/fs/cgroup/kubepods/besteffort/pod{}",
    ],
)
def test_pods_that_completed_have_nothing(place: str) -> None:
    """Their folders and their devices in the checkpoint remain, their cgroups do not (kubelet, SyncTerminatedPod)."""
    files = {CHECKPOINT: GPUS, f"var/lib/kubelet/pods/{ONE}/etc-hosts": "", f"var/lib/kubelet/pods/{TWO}/etc-hosts": ""}
    running, created = (place.format(uid, _=uid.replace("-", "_")) for uid in (ONE, TWO))
    files |= {f"{running}/cgroup.events": "populated 1\nfrozen 0", f"{created}/cgroup.events": "populated 0\nfrozen 0"}
    assert allocations(tree(files)) == {f"kubernetes:{ONE}": f"pod {ONE} (nvidia.com/gpu)"}


def test_pods_with_cgroup_v1() -> None:
    pods = "sys/fs/cgroup/memory/kubepods.slice/kubepods-besteffort.slice"
    running, created = (f"{pods}/kubepods-besteffort-pod{uid.replace('-', '_')}.slice" for uid in (ONE, TWO))
    files = {f"{running}/cgroup.procs": "", f"{created}/cgroup.procs": "", f"{created}/memory.stat": "cache 0"}
    files |= {f"{running}/cri-containerd-77aa.scope/cgroup.procs": "4711", CHECKPOINT: GPUS}
    assert allocations(tree(files)) == {f"kubernetes:{ONE}": f"pod {ONE} (nvidia.com/gpu)"}


@pytest.mark.parametrize(
    ("resource", "ids"),
    [
        ("nvidia.com/gpu.shared", {"0": ["GPU-1::0"]}),
        ("nvidia.com/mig-1g.10gb", {"0": ["MIG-1"]}),
        ("nvidia.com/GH100_H100_SXM5", {"-1": ["77"]}),
        ("amd.com/gpu", {"0": ["0000:0c:00.0"]}),
        ("gpu.intel.com/i915", {"0": ["card0-0"]}),
        ("run.example/slice", {"-1": ["GPU-6d4e0a3c-1a34"]}),
        ("run.example/slice", ["GPU-6d4e0a3c-1a34"]),
        ("rdma/hca_shared_devices_a", {"-1": ["17"]}),
        ("openshift.io/mlxnics", {"0": ["0000:3b:00.2"]}),
        ("openshift.io/fast", {"0": ["0000:3b:00.2"]}),
        ("vpc.amazonaws.com/efa", {"-1": ["rdmap0s8"]}),
    ],
)
def test_gpus_and_rdma_devices(resource: str, ids: object) -> None:
    files = {CHECKPOINT: checkpoint((ONE, resource, ids)), "sys/bus/pci/devices/0000:3b:00.2/class": "0x020000"}
    assert allocations(tree(files)) == {f"kubernetes:{ONE}": f"pod {ONE} ({resource})"}


@pytest.mark.parametrize(
    ("resource", "ids"),
    [
        ("smarter-devices/fuse", {"0": ["fuse-1"]}),
        ("devices.kubevirt.io/kvm", {"0": ["kvm1"]}),
        ("github.com/fuse", None),
        ("squat.ai/video", {"0": ["default"]}),
        ("qat.intel.com/generic", {"0": ["0000:6b:00.1"]}),
    ],
)
def test_other_device_plugins(resource: str, ids: object) -> None:
    files = {CHECKPOINT: checkpoint((ONE, resource, ids)), "sys/bus/pci/devices/0000:6b:00.1/class": "0x0b4000"}
    assert allocations(tree(files)) == {}


CLAIMS = "var/lib/kubelet/dra_manager_state"


def claims(*given: tuple[str, list[str]], now: bool = True) -> str:
    """The claims of dynamic resource allocation, as in pkg/kubelet/cm/dra/state of Kubernetes, with its examples."""
    device = {
        "PoolName": "worker-1",
        "DeviceName": "gpu-0",
        "RequestNames": ["gpu"],
        "CDIDeviceIDs": ["k8s.gpu/claim=0"],
    }
    entries = [
        {
            "ClaimUID": "067798be-454e-4be4-9047-1aa06aea63f7",
            "ClaimName": "example",
            "Namespace": "default",
            "PodUIDs": {pod: {} for pod in pods},
            **({"DriverState": {driver: {"Devices": [device]}}} if now else {"DriverName": driver, "ClassName": "c"}),
        }
        for driver, pods in given
    ]
    if not now:
        return json.dumps({"version": "v1", "entries": entries, "checksum": 113577689})
    head = {"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1"}
    return json.dumps({"Data": json.dumps({**head, "Entries": entries or None}), "Checksum": 1597924435})


@pytest.mark.parametrize("now", [True, False])
def test_gpus_that_dra_allocates(now: bool) -> None:
    """No device plugin knows them. A compute domain is no GPU; a claim without pods is reserved for none."""
    given = claims(("gpu.nvidia.com", [ONE]), ("compute-domain.nvidia.com", [TWO]), ("gpu.amd.com", []), now=now)
    found = {f"kubernetes:{ONE}": f"pod {ONE} (gpu.nvidia.com, claim example)"}
    assert allocations(tree({CLAIMS: given})) == found
    assert allocations(tree({CLAIMS: given, CHECKPOINT: checkpoint((TWO, "smarter-devices/fuse", None))})) == found
    ended = {f"sys/fs/cgroup/kubepods.slice/kubepods-pod{ONE.replace('-', '_')}.slice/cgroup.events": "populated 0"}
    assert allocations(tree({CLAIMS: given, **ended})) == {}
    assert allocations(tree({CLAIMS: claims(now=now)})) == {}


def test_a_node_without_a_scheduler() -> None:
    assert allocations(Recorded(1000, {})) == {}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({CHECKPOINT: "{"}, f"{CHECKPOINT}: Input data was truncated"),
        ({CHECKPOINT: UnreadableFile(13, "Permission denied")}, f"{CHECKPOINT}: Permission denied"),
        ({CLAIMS: '{"Data": "{"}'}, f"{CLAIMS}: Input data was truncated"),
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
    with pytest.raises(AllocationsUnknown) as unknown:
        allocations(host)
    assert str(unknown.value) == why
    assert allocations(host, "kubernetes:0b7c") == {}


@given(st.text() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_any_checkpoint_is_read_or_refused(text: str) -> None:
    for path in (CHECKPOINT, CLAIMS):
        with suppress(AllocationsUnknown):
            assert isinstance(allocations(Recorded(1000, {path: text})), dict)
