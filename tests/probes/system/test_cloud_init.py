"""The machine type from cloud-init: one value of a file with much private content."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.machine import Node
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked
from linkgauge.probes.capture.anonymize import scrub
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.host.entries import Link
from linkgauge.probes.host.recorded import dump
from linkgauge.probes.system.cloud_init import INSTANCE_DATA, instance_type, instance_type_alone
from linkgauge.probes.system.node import read_node
from tests.support.nodes.trees import tree

TAG = "sys/class/dmi/id/chassis_asset_tag"
AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"
SECRET = {
    "instance_id": "i-0929128ff2f73a2f1",
    "local_hostname": "ip-172-31-81-43",
    "public_ssh_keys": ["ssh-rsa AAAA"],
}


def azure(size: object) -> dict[str, Any]:
    compute = {"vmSize": size, "resourceGroupName": "secret-project", "publicKeys": [{"keyData": "ssh-rsa AAAA"}]}
    return {"ds": {"meta_data": {"imds": {"compute": compute}}}, "v1": SECRET}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"ds": {"meta_data": {"instance_type": "p5.48xlarge", **SECRET}}}, "p5.48xlarge"),
        ({"ds": {"meta_data": {"instance-type": "p5.48xlarge", **SECRET}}}, "p5.48xlarge"),
        (azure("Standard_ND96isr_H100_v5"), "Standard_ND96isr_H100_v5"),
        ({"ds": {"shape": "BM.GPU.GB200-v3.4", "displayName": "secret"}}, "BM.GPU.GB200-v3.4"),
        ({"ds": {"meta_data": {"instance-id": "1"}}, "v1": {"cloud_name": "gce", **SECRET}}, None),
        (azure("redacted for non-root user"), None),
        (azure(7), None),
        ({"ds": ["shape"]}, None),
        ([], None),
    ],
)
def test_the_type_and_no_more(data: Any, expected: str | None) -> None:
    text = json.dumps(data)
    assert instance_type(text) == expected
    kept = instance_type_alone(text)
    assert instance_type(kept) == expected
    assert instance_type_alone(kept) == kept
    assert not any(word in kept for word in ("secret", "ssh-rsa", "ip-172", "i-0929"))


@given(st.text(max_size=40) | st.just("[" * 100_000))
def test_any_text(text: str) -> None:
    try:
        found = instance_type(text)
    except ValueError as wrong:
        found = str(wrong)
    assert (found, instance_type_alone(text)) in ((None, "{}"), ("is not JSON", ""))


def node_of(said: list[Any]) -> Node:
    return next(one for one in said if isinstance(one, Node))


def test_it_is_read_and_cited_alone() -> None:
    node = node_of(
        list(read_node(tree({INSTANCE_DATA: json.dumps(azure("Standard_NC40ads_H100_v5")), TAG: AZURE_TAG})))
    )
    assert (node.instance, node.asset_tag) == ("Standard_NC40ads_H100_v5", AZURE_TAG)
    kept = '{"ds":{"meta_data":{"imds":{"compute":{"vmSize":"Standard_NC40ads_H100_v5"}}}}}'
    assert node.cites["instance"] == Evidence(INSTANCE_DATA, kept)


def test_a_file_that_is_no_json() -> None:
    said = list(read_node(tree({INSTANCE_DATA: "<html>"})))
    assert (
        NotChecked(
            what="Node.instance", subject="node", reason=Reason.UNREADABLE, path=INSTANCE_DATA, detail="is not JSON"
        )
        in said
    )


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("text", [json.dumps(azure("Standard_NC40ads_H100_v5")), "<html>ssh-rsa secret</html>", "{}"])
def test_a_capture_holds_it_alone_and_answers_alike(text: str, linked: bool) -> None:
    """Wherever the file really lies."""
    elsewhere = "var/lib/cloud/data.json"
    machine = tree({INSTANCE_DATA: Link(f"/{elsewhere}"), elsewhere: text} if linked else {INSTANCE_DATA: text})
    recording = Recording(machine)
    said = list(read_node(recording))
    recorded = recording.recorded()
    assert list(read_node(recorded)) == said
    assert not any(word in dump(recorded) for word in ("secret", "ssh-rsa"))


@pytest.mark.parametrize(
    ("tag", "kept"),
    [
        (AZURE_TAG, AZURE_TAG),
        ("OracleCloud.com", "OracleCloud.com"),
        ("Not Specified", "Not Specified"),
        ("INV-0012345", "SERIAL00001"),
    ],
)
def test_tags_of_clouds_stay_and_those_of_owners_do_not(tag: str, kept: str) -> None:
    recording = Recording(tree({TAG: tag}))
    list(read_node(recording))
    assert node_of(list(read_node(scrub(recording.recorded())))).asset_tag == kept
