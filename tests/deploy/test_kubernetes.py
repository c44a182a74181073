"""The files of deploy/kubernetes, checked by the schemas of Kubernetes, by Prometheus' parser, and by bash."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cel
import jsonschema
import pytest
import tomli
import yaml
from kubernetes_validate import SchemaNotFoundError, ValidationError, validate

from linkgauge.agent.kubernetes import node_condition
from linkgauge.agent.service.config import Config
from linkgauge.agent.web.pages import Pages
from linkgauge.exporters.events import nvsentinel
from linkgauge.exporters.events.protobuf import messages
from linkgauge.exporters.metrics.sample import CycleInfo
from linkgauge.models.report import Report
from linkgauge.models.site.gate import Gate
from linkgauge.models.site.schema import read_site
from linkgauge.models.site.toml_tables import read_tables
from tests.support.nodes.broken_nodes import BROKEN
from tests.support.nodes.described import node, report_of

KUBERNETES = Path(__file__).parents[2] / "deploy/kubernetes"
FOLDERS = sorted(path.parent.name for path in KUBERNETES.glob("*/kustomization.yaml"))
PLUGIN = KUBERNETES / "npd/linkgauge.sh"
VERSIONS = ("1.32", "1.37")  # the oldest that the policy of the gate needs, and a new one
Object = dict[str, Any]
# Of the CustomResourceDefinition of the Node Readiness Controller (v1alpha1).
_STATUS = {"enum": ["True", "False", "Unknown"]}
_CONDITION = {
    "type": "object",
    "properties": {"type": {"type": "string", "maxLength": 316}, "requiredStatus": _STATUS, "defaultStatus": _STATUS},
    "required": ["type", "requiredStatus"],
    "additionalProperties": False,
}
_TAINT = {
    "type": "object",
    "properties": {
        "key": {"type": "string", "pattern": "^readiness.k8s.io/"},
        "value": {"type": "string"},
        "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
    },
    "required": ["key", "effect"],
    "additionalProperties": False,
}
NODE_READINESS_RULE = {
    "properties": {
        "apiVersion": {"const": "readiness.node.x-k8s.io/v1alpha1"},
        "spec": {
            "type": "object",
            "properties": {
                "conditions": {"type": "array", "minItems": 1, "maxItems": 32, "items": _CONDITION},
                "taint": _TAINT,
                "nodeSelector": {"type": "object"},
                "enforcementMode": {"enum": ["bootstrap-only", "continuous"]},
                "dryRun": {"type": "boolean"},
            },
            "required": ["conditions", "nodeSelector", "taint"],
            "additionalProperties": False,
        },
    },
    "required": ["spec"],
}
# Of the CustomResourceDefinition of the Cluster Readiness Engine (v1alpha1); a TrainJob is of the Kubeflow Trainer.
READINESS_JOB = {
    "properties": {
        "apiVersion": {"const": "nvcre.nvidia.com/v1alpha1"},
        "spec": {
            "type": "object",
            "properties": {
                "workload": {
                    "type": "object",
                    "properties": {"trainJob": {"type": "object", "required": ["runtimeRef"]}},
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": False,
                },
                "nodeHealthMonitor": {
                    "type": "object",
                    "properties": {
                        "cel": {
                            "type": "object",
                            "properties": {"expression": {"type": "string", "minLength": 1, "maxLength": 2048}},
                            "required": ["expression"],
                            "additionalProperties": False,
                        }
                    },
                    "additionalProperties": False,
                },
            },
            "required": ["workload"],
            "additionalProperties": False,
        },
    },
    "required": ["spec"],
}
CUSTOM = {"NodeReadinessRule": NODE_READINESS_RULE, "Job": READINESS_JOB}


def written() -> Iterator[Object]:
    for path in sorted(KUBERNETES.glob("*/*.yaml")):
        if path.name != "kustomization.yaml":
            yield from yaml.safe_load_all(path.read_text())


def check(thing: Object, version: str) -> None:
    try:
        validate(thing, version, strict=True)
    except SchemaNotFoundError:
        if thing["kind"] in CUSTOM:
            jsonschema.validate(thing, CUSTOM[thing["kind"]])
        else:
            assert thing["kind"] == "PodMonitor"  # of the Prometheus operator


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schemas_have_all_that_is_written(version: str) -> None:
    things = list(written())
    assert len(things) > 15
    for thing in things:
        check(thing, version)
    things[0]["spec"] = {"replicas": "many"}
    with pytest.raises(ValidationError):
        check(things[0], version)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl here")
@pytest.mark.parametrize("folder", FOLDERS)
def test_what_kustomize_makes_of_it(folder: str) -> None:
    made = subprocess.run(["kubectl", "kustomize", KUBERNETES / folder], capture_output=True, text=True, check=True)
    things = [one for one in yaml.safe_load_all(made.stdout) if one]
    for thing in things:
        check(thing, VERSIONS[-1])
    images = re.findall(r"image: (\S+)", made.stdout)
    assert "linkgauge" not in images
    assert made.stderr == ""


def containers(thing: Any) -> Iterator[Object]:
    if isinstance(thing, dict):
        for key, value in thing.items():
            if key in ("containers", "initContainers"):
                yield from value
            else:
                yield from containers(value)
    elif isinstance(thing, list):
        for one in thing:
            yield from containers(one)


def test_only_the_container_that_creates_the_state_folder_is_root() -> None:
    ours = [one for thing in written() for one in containers(thing) if "linkgauge" in one["image"]]
    users = {one["name"]: (one["securityContext"]["runAsUser"], one["securityContext"]["capabilities"]) for one in ours}
    none = {"drop": ["ALL"]}
    assert users == {
        "state": (0, {"drop": ["ALL"], "add": ["CHOWN"]}),
        "linkgauge": (65532, none),
        "gate": (65532, none),
        "probe": (65532, none),
        "probes": (65532, none),
    }
    assert not any(one["securityContext"]["allowPrivilegeEscalation"] for one in ours)
    mounts = [mount for one in ours for mount in one["volumeMounts"] if mount["mountPath"] in ("/host", "/state")]
    assert len(mounts) == 2
    assert all(mount["readOnly"] for mount in mounts)


def test_its_configuration_is_one() -> None:
    config = read_tables((KUBERNETES / "base/linkgauge.toml").read_text(), Config)
    assert (config.listen, config.textfile) == ("0.0.0.0:9841", "/var/lib/linkgauge/linkgauge.prom")
    assert config.probes.every is None
    assert read_site((KUBERNETES / "base/site.toml").read_text()).gate == Gate()
    assert not read_site((KUBERNETES / "gate/site.toml").read_text()).gate.enforce


def test_the_service_may_do_what_it_is_configured_for_alone() -> None:
    config = read_tables((KUBERNETES / "condition/linkgauge.toml").read_text(), Config)
    assert (config.push.kubernetes, config.push.device_taints) == (True, None)
    (role,) = (one for one in written() if one["kind"] == "ClusterRole" and one["metadata"]["name"] == "linkgauge")
    allowed = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert allowed == {
        ("nodes", "get"),
        ("nodes/status", "patch"),
        ("resourceslices", "list"),
        *(("devicetaintrules", verb) for verb in ("list", "create", "delete")),
    }


def test_samples_name_what_linkgauge_sends() -> None:
    rule = yaml.safe_load((KUBERNETES / "samples/node-readiness-rule.yaml").read_text())
    assert [one["type"] for one in rule["spec"]["conditions"]] == [node_condition.TYPE]
    (quarantine,) = tomli.loads((KUBERNETES / "samples/nvsentinel-fault-quarantine.toml").read_text())["rule-sets"]
    (match,) = quarantine["match"]["all"]
    assert f"event.agent == '{nvsentinel.AGENT}'" in match["expression"]
    names = {*re.findall(r"event\.(\w+)", match["expression"])}
    assert names <= {one.name for one in messages("health_event.proto")["HealthEvent"].DESCRIPTOR.fields}


@pytest.mark.parametrize(
    ("conditions", "failed"),
    [
        ([{"type": node_condition.TYPE, "status": "False"}], True),
        ([{"type": node_condition.TYPE, "status": "True"}], False),
        ([{"type": node_condition.TYPE, "status": "Unknown"}], False),
        ([{"type": "Ready", "status": "False"}], False),
        ([], False),
    ],
)
def test_the_cluster_readiness_engine_takes_a_fault_alone(conditions: list[Object], failed: bool) -> None:
    job = yaml.safe_load((KUBERNETES / "samples/cluster-readiness-job.yaml").read_text())
    expression = job["spec"]["nodeHealthMonitor"]["cel"]["expression"]
    assert cel.evaluate(expression, {"node": {"status": {"conditions": conditions}}}) is failed


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool here")
def test_prometheus_takes_the_labels_of_the_pod_monitor(tmp_path: Path) -> None:
    """The operator writes such a configuration of it; Debian's Prometheus is built without asking Kubernetes."""
    (monitor,) = (one for one in written() if one["kind"] == "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    rules = [{re.sub("([A-Z])", r"_\1", key).lower(): rule[key] for key in rule} for rule in endpoint["relabelings"]]
    job = {
        "job_name": "linkgauge",
        "relabel_configs": rules,
        "scrape_interval": endpoint["interval"],
        "scrape_timeout": endpoint["scrapeTimeout"],
        "static_configs": [{"targets": ["localhost:9841"]}],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": [job]}))
    done = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {rule.get("target_label") for rule in rules} == {"instance", "rack", None}


def plugin(tmp_path: Path, wanted: str, report: Report | None, late: float = 0.0) -> tuple[int, str]:
    """What node-problem-detector gets from the plugin after a service has written that."""
    file = tmp_path / "linkgauge.prom"
    if report is not None:
        pages = Pages({})
        pages.put(report, CycleInfo(ended=time.time() - late, seconds=0.25))
        file.write_bytes(pages.read("metrics"))
    done = subprocess.run(["bash", PLUGIN, wanted, file], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.rstrip("\n")) <= 80
    return done.returncode, done.stdout.rstrip("\n")


def broken(name: str) -> Report:
    return report_of(node(BROKEN[name].base, f"\n{BROKEN[name].further}\n"))


def test_the_plugin_of_node_problem_detector(tmp_path: Path) -> None:
    assert plugin(tmp_path, "failed", None) == (2, "linkgauge.prom is not readable: is linkgauge serve running?")
    healthy = report_of(node("hgx-h100"))
    assert plugin(tmp_path, "failed", healthy) == plugin(tmp_path, "degraded", healthy) == (0, "")
    narrow = broken("x8")
    assert plugin(tmp_path, "failed", narrow) == (1, "pcie-link-narrow 0000:3e:00.0")
    assert plugin(tmp_path, "degraded", narrow) == (0, "")
    code, text = plugin(tmp_path, "failed", narrow, late=1000)
    assert code == 2
    assert re.fullmatch(r"linkgauge serve has not completed a cycle for \d{3,5} s", text)
    assert plugin(tmp_path, "sometimes", narrow) == (2, "linkgauge.sh failed|degraded [FILE]")
    (tmp_path / "linkgauge.prom").write_text("what is this\n")
    code, _ = plugin(tmp_path, "failed", None)
    assert code == 2


def test_many_findings_are_counted(tmp_path: Path) -> None:
    further = "".join(f"[device.gpu{number}]\nwidth = 8\n" for number in range(8))
    code, text = plugin(tmp_path, "failed", report_of(node("hgx-h100", f"\n{further}")))
    assert (code, text) == (1, "pcie-link-narrow 0000:1b:00.0, pcie-link-narrow 0000:1e:00.0 (+6)")


def test_the_rules_of_node_problem_detector() -> None:
    """What its Validate() asks (pkg/custompluginmonitor/types)."""
    config = json.loads((KUBERNETES / "npd/linkgauge.json").read_text())
    conditions = {one["type"] for one in config["conditions"]}
    assert config["plugin"] == "custom"
    assert {one["condition"] for one in config["rules"]} == conditions
    for rule in config["rules"]:
        assert rule["type"] == "permanent"
        assert Path(rule["path"]).name == PLUGIN.name
        assert int(rule["timeout"][:-1]) <= int(config["pluginConfig"]["timeout"][:-1])
    assert config["pluginConfig"]["max_output_length"] == 80
