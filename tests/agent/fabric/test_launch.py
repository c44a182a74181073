"""The place of a process among the nodes, and the nodes that the user names."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkgauge.agent.fabric.command import hosts_of
from linkgauge.agent.fabric.launch import PORT, Launch, address_of, first_node, launch_of
from linkgauge.agent.inputs.environment import clean
from linkgauge.agent.inputs.site_file import BadInput

SLURM = {
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_NTASKS": "16",
    "SLURM_STEP_NODELIST": "gpu[03-08,11],login",
    "SLURM_JOB_ID": "4711",
    "SLURMD_NODENAME": "gpu06",
}
MPIRUN = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("variables", "launch"),
    [
        (SLURM, Launch(3, 8, "gpu03", "slurm:4711", "gpu06")),
        (MPIRUN, Launch(0, 2)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, None),  # the batch script itself
        ({"SLURM_PROCID": "x", "SLURM_STEP_NUM_TASKS": "4"}, None),
        ({}, None),
    ],
)
def test_srun_and_mpirun_tell_the_rank(variables: dict[str, str], launch: Launch | None) -> None:
    clean(variables, privileged=False)
    assert launch_of(variables) == launch


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("gpu[03-08,11],x", "gpu03"), ("a,b", "a"), ("r[1-2]n[04-05]", "r1n04"), ("x[7]y", "x7y"), ("", "")],
)
def test_the_first_node_of_a_list(nodes: str, first: str) -> None:
    assert first_node(nodes) == first


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("head", ("head", PORT)),
        ("10.0.0.1:99", ("10.0.0.1", 99)),
        ("[2001:db8::1]", ("2001:db8::1", PORT)),
        ("[2001:db8::1]:7", ("2001:db8::1", 7)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["", "a:b", "2001:db8::1", "[x]", "a:1:2", "a:999999"])
def test_wrong_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        address_of(text)


def test_hosts_are_a_list_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# of rack 1\nnode1 slots=8\n\nnode2\nnode1\n")
    assert hosts_of(str(path)) == hosts_of("node1, node2,node1") == ("node1", "node2")
    with pytest.raises(BadInput, match="at least two nodes"):
        hosts_of("node1")
