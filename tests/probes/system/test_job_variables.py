"""Variables of the collective library: only known ones, from the environment before /etc/nccl.conf."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.machine import Setting
from linkgauge.models.facts.records import Evidence
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.host.entries import UnreadableFile
from linkgauge.probes.system.job_variables import known_variables, read_variables
from tests.support.nodes.trees import tree

ENVIRON = "\0".join(("AWS_SECRET_KEY=abc", "NCCL_P2P_DISABLE=1", "PATH=/bin", "NCCL_DEBUG=INFO", "FI_PROVIDER=tcp", ""))
CONF = "# for all jobs\nNCCL_P2P_DISABLE=0\n NCCL_NVLS_ENABLE=0 \nNCCL_IB_DISABLE=\n"


def setting(name: str, value: str, path: str) -> Setting:
    return Setting(key=name, value=value, cites={"value": Evidence(path, f"{name}={value}")})


def test_known_variables_alone() -> None:
    host = tree({"proc/self/environ": ENVIRON, "etc/nccl.conf": CONF})
    assert list(read_variables(host)) == [
        setting("NCCL_P2P_DISABLE", "1", "proc/self/environ"),
        setting("FI_PROVIDER", "tcp", "proc/self/environ"),
        setting("NCCL_NVLS_ENABLE", "0", "etc/nccl.conf"),
    ]
    assert list(read_variables(tree({"proc/self/environ": UnreadableFile(13, "Permission denied")}))) == []


def test_a_capture_has_no_other_variable() -> None:
    recording = Recording(tree({"proc/self/environ": ENVIRON}))
    wanted = list(read_variables(recording))
    recorded = recording.recorded()
    assert recorded.entries["proc/self/environ"] == "NCCL_P2P_DISABLE=1\0FI_PROVIDER=tcp"
    assert list(read_variables(recorded)) == wanted


@given(st.text(st.sampled_from("NCL_P2DISABE=1 \0\n\x1bé"), max_size=80))
def test_hostile_environments(text: str) -> None:
    for one in read_variables(tree({"proc/self/environ": text})):
        assert one.key in {"NCCL_P2P_DISABLE"}
        assert one.value
        assert one.value.isascii()
        assert one.value.isprintable()
    assert known_variables(known_variables(text)) == known_variables(text)
