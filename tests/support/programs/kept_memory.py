"""The state that a service keeps across restarts."""

from __future__ import annotations

from linkgauge.agent.pipeline.cycle import Memory
from linkgauge.models.diagnosis.hysteresis import History
from linkgauge.models.facts.records import Evidence, Flow, Observation, Run
from linkgauge.models.report import Finding

AT = 1.8e9
RATE = Observation(
    about=Flow("copy", ("gpu0", "numa0"), 1 << 30, "pcie", (("gpu1", "numa0"),)),
    quantity="rate",
    unit="bytes_per_second",
    value=5.5e10,
    at=AT,
    busy=True,
    evidence=Evidence("a", "b"),
)
COUNT = Observation(about="gpu0", quantity="pcie_replay", unit="count", value=3, at=AT, evidence=Evidence("a", "b"))
FINDING = Finding(code="gpu-xid", subject="gpu0", severity="critical", kind="event", message="Xid 79")
MEMORY = Memory(
    measured=(RATE, Run(name="host_copy", ok=True, seconds=1.5, bytes=1 << 30, at=AT)),
    histories={("gpu-xid", "gpu0", "event"): History((FINDING,), (True,), shown=True, first=AT, last=AT)},
    past=(COUNT,),
)
