"""`linkgauge plan`: its output, its charts and its refusals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from linkgauge.agent.cli.main import main
from linkgauge.agent.cli.model.cluster_spec import ClusterSpec
from linkgauge.agent.cli.model.plan_api import frame, plan, sweep
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.exporters.commands.plan import WIDTH
from linkgauge.models.bandwidth.message_times import pace_of, seconds
from linkgauge.models.bandwidth.network_tiers import group

ROOT = Path(__file__).parents[3]
DGX = ("--machine", "nvidia-dgx-h100", "--nodes", "64")
JOB = "llama3-70b,tp=8,zero=3,micro=8,recompute,seq=8192,tokens=4M"
# 8 H100 of one node, and 16 of two: every rate half of what the catalog expects of long messages, and less of others.
TABLE = """# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1073741824 step: 32(factor) warmup iters: 5 iters: 20
# Collective test starting: {name}
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    {small}       0    {small}       0
  1073741824     268435456     float     sum      -1    {large}       0    {large}       0
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["plan", *arguments])


def ranks(many: int) -> str:
    """The lines with the GPU of each rank."""
    return "".join(
        f"#  Rank {rank:2} Group  0 Pid {900 + rank} on node{rank // 8} device {rank % 8} [0000:{rank % 8:02x}:00] "
        "NVIDIA H100 80GB HBM3\n"
        for rank in range(many)
    )


def table(name: str, many: int, bus: tuple[float, float]) -> str:
    """The output of nccl-tests for two sizes with these bus bandwidths in GB/s."""
    factor = 2 * (many - 1) / many
    cells = [
        f"{size / (rate / factor) / 1e3:.1f} {rate / factor:.2f} {rate:.2f}"
        for size, rate in zip((1 << 20, 1 << 30), bus, strict=True)
    ]
    head, _, rows = TABLE.format(name=name, small=cells[0], large=cells[1]).partition("#       size")
    return f"{head}# Using devices\n{ranks(many)}#       size{rows}"


def test_a_layout() -> None:
    done = run(JOB, *DGX)
    assert done.exit_code == 0
    assert all(len(line) <= WIDTH for line in done.output.splitlines())
    assert done.output == (ROOT / "tests" / "golden" / "plan.txt").read_text()


def test_the_best_layouts() -> None:
    done = run("llama3-405b,tokens=16M", "--machine", "nvidia-dgx-h100", "--nodes", "2048", "--sweep", "--top", "4")
    assert done.exit_code == 0
    assert all(len(line) <= WIDTH for line in done.output.splitlines())
    assert done.output == (ROOT / "tests" / "golden" / "plan-sweep.txt").read_text()


def test_a_sweep_keeps_the_degrees_of_the_job() -> None:
    found = json.loads(run("llama3-70b,tp=4,pp=2,recompute", *DGX, "--sweep", "--format", "json").output)
    layouts = [step["layout"] for step in found["steps"]]
    assert len(layouts) == 10
    assert {(one["tensor"], one["pipeline"], one["recompute"]) for one in layouts} == {(4, 2, True)}
    assert len({one["micro"] for one in layouts}) > 1


def test_models_of_a_config_and_of_the_site_file(tmp_path: Path) -> None:
    """Both describe llama3-8b, and have its step."""
    folder = tmp_path / "My Model"
    folder.mkdir()
    sizes = {
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
    }
    (folder / "config.json").write_text(json.dumps(sizes))
    site = tmp_path / "site.toml"
    site.write_text(
        '[[network]]\nname = "Ours"\nlayers = 32\nwidth = 4096\nheads = 32\nkv_heads = 8\nhead = 128\n'
        "feed_forward = 14336\nvocabulary = 128256\nsequence = 8192\n"
    )
    jobs = (["LLaMA3-8B"], [f"{folder}/config.json"], ["ours", "--site", str(site)])
    found = [json.loads(run(f"{job},tp=2,GBS=512", *more, *DGX, "--format", "json").output) for job, *more in jobs]
    assert [one["job"]["model"] for one in found] == ["llama3-8b", "My-Model", "Ours"]
    assert {one["job"]["tokens"] for one in found} == {512 * 8192}
    assert found[0]["steps"] == found[1]["steps"] == found[2]["steps"]
    (folder / "config.json").write_text("{}")
    refused = run(f"{folder}/config.json", *DGX)
    assert refused.exit_code == 64
    assert "has no num_attention_heads or n_head: is it the config.json of a language model?" in " ".join(
        refused.output.split()
    )


def test_the_docs_show_what_it_prints() -> None:
    """Each block of docs/operate/plan.md is the exact output, up to "..."."""
    text = (ROOT / "docs" / "operate" / "plan.md").read_text()
    blocks = re.findall(r"```console\n\$ linkgauge plan ([^\n]*)\n(.*?)```", text, re.DOTALL)
    assert blocks
    for line, shown in blocks:
        printed = run(*line.split()).output
        assert printed == shown or (shown.endswith("\n...\n") and printed.startswith(shown.removesuffix("...\n"))), line


def test_steps_are_as_near_to_published_runs_as_they_must_be() -> None:
    """docs/reference/accuracy.md has the errors."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.accuracy.plan", "--runs"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout in (ROOT / "docs" / "reference" / "accuracy.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["aws-p5.48xlarge", "nvidia-gb200-tray", "azure-nd96isr-mi300x-v5", "nvidia-dgx-a100"])
@pytest.mark.parametrize("model", ["llama3-8b", "mixtral-8x7b", "gpt-oss-120b"])
def test_lines_fit_a_terminal(name: str, model: str) -> None:
    for more in ([], ["--sweep"]):
        done = run(f"{model},recompute,zero=3" if not more else model, "--machine", name, "--nodes", "18", *more)
        assert done.exit_code in (0, 64)
        assert all(len(line) <= WIDTH for line in done.output.splitlines() if not line.startswith("Error"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["llama3-70c"], "llama3-70c: no model is called 'llama3-70c'; did you mean 'llama3-70b'?"),
        (["llama3-70b,tp=128,dp=4", *DGX], "tp=128 does not divide the 64 heads of llama3-70b"),
        (["llama3-70b,tp=8,dp=3", *DGX], "tp=8 x pp=1 x dp=3 is 24 GPUs, not 512"),
        (["llama3-70b,tp=8,tokens=8320", *DGX], "8320 tokens are not a multiple of the sequence length 8192"),
        (["llama3-70b,tp=8,tokens=8k", *DGX], "1 sequences in a step do not divide into dp=64 x micro=1"),
        (["llama3-70b,zero=1", *DGX], "memory: 411 GB on each GPU"),
        (["llama3-70b", "--machine", "nvidia-dgx-h100", "--nodes", "0"], "--nodes 0: at least one node is required"),
        (["llama3-70b", "--machine", "nvidia-dgx-h10"], "no machine type is called 'nvidia-dgx-h10'; did you mean"),
        (["llama3-70b", "--machine", "mi300x-8", "--nodes", "2"], "the rate of its NICs is not known"),
        (["llama3-70b", *DGX, "--network", "8"], "--network 8: write a number and Gb/s of each: 8x400"),
        (["llama3-70b", *DGX, "--network", "0x400"], "--network 0x400: write a number"),
        (["llama3-70b", *DGX, "--rails"], "--rails and --oversubscription need the switches"),
        (["llama3-70b", *DGX, "--switches", "4x400"], "64 nodes: three tiers of switches with 4 ports|does not fit"),
        (["llama3-70b,tp=5", *DGX, "--sweep"], "no layout of llama3-70b on 512 GPUs has tp=5: fix fewer degrees"),
        (["llama3-70b,tp=8,recompute", *DGX, "--train", "15"], "--train 15: write the number of tokens as"),
        (["llama3-70b,tp=8", *DGX, "--plot", "x.doc"], "--plot x.doc: name a file that ends in .svg"),
        (["llama3-405b", "--machine", "nvidia-dgx-h100", "--sweep"], "memory: none of"),
    ],
)
def test_what_cannot_be_is_a_sentence(arguments: list[str], says: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 64, done.output
    assert re.search(says, done.output), done.output
    assert "Traceback" not in done.output


def test_a_node_of_no_type_must_be_named(tmp_path: Path) -> None:
    dump = tmp_path / "numactl.txt"
    dump.write_text("available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 1000 MB\nnode 0 free: 1 MB\n")
    assert "name a type, such as --machine nvidia-dgx-h100" in run("llama3-8b", "--from", str(dump)).output
    named = run("llama3-8b,zero=3", *DGX, "--from", str(dump))
    assert "holds no table of nccl-tests or rccl-tests" in named.output


def test_a_recorded_node_is_what_its_machines_are(tmp_path: Path) -> None:
    capture = tmp_path / "p5.capture"
    made = CliRunner().invoke(main, ["capture", "--synthetic", str(ROOT / "tests/nodes/p5-tree.toml"), str(capture)])
    assert made.exit_code == 0
    here = run("llama3-8b,zero=3,recompute", "--nodes", "4", "--from", str(capture))
    named = run("llama3-8b,zero=3,recompute", "--nodes", "4", "--machine", "aws-p5.48xlarge")
    assert here.exit_code == 0, here.output
    assert here.output == named.output


def test_measured_collectives_replace_the_catalog(tmp_path: Path) -> None:
    """The plan uses the measured times at their sizes, in the node and between nodes. They make the step slower."""
    near, far = tmp_path / "node.txt", tmp_path / "pair.txt"
    near.write_text(table("all_reduce_perf", 8, (10.0, 220.0)))
    far.write_text(table("all_reduce_perf", 16, (5.0, 200.0)))
    spec = ClusterSpec("nvidia-dgx-h100", 64, source=[str(near), str(far)])
    slow = plan(JOB, spec).cluster
    for ranks_, across, rates in ((8, False, (10.0, 220.0)), (16, True, (5.0, 200.0))):
        pace = pace_of("all_reduce", group(slow.levels, ranks_), slow.algorithms, slow.inside, slow.switched)
        factor = 2 * (ranks_ - 1) / ranks_
        points = dict(slow.measured["all_reduce", across])
        for size, rate in zip((1 << 20, 1 << 30), rates, strict=True):
            assert size * factor / (seconds(pace, size) * points[size]) == pytest.approx(rate * 1e9, rel=0.01)
    assert slow.measured["all_gather", True] == slow.measured["all_reduce", True]
    quick = plan(JOB, ClusterSpec("nvidia-dgx-h100", 64))
    assert plan(JOB, spec).step.usual > quick.step.usual
    assert plan(JOB, spec).step.compute == quick.step.compute
    output = run(JOB, *DGX, "--from", str(near), "--from", str(far)).output
    assert "measured      all_gather inside nodes, all_gather between nodes, all_reduce inside nodes" in output


def test_switches_and_nics_as_options() -> None:
    """Oversubscription slows AllToAll between units. A tree at full rate equals no tree. Faster NICs help."""
    job = "gpt-oss-120b,tp=8,ep=128,graphs,tokens=16M"
    nodes = ("--machine", "nvidia-dgx-h100", "--nodes", "256", "--format", "json")
    tree = ("--switches", "64x400", "--rails")
    seconds = [
        json.loads(run(job, *nodes, *more).output)["steps"][0]["usual"]
        for more in ((*tree, "--oversubscription", "4"), tree, (), ("--network", "8x800"))
    ]
    assert seconds[0] > seconds[1]
    assert seconds[1] == pytest.approx(seconds[2], rel=0.02)
    assert seconds[3] < seconds[2]


def test_checkpoints_on_storage_of_the_site_file(tmp_path: Path) -> None:
    """BLOOM-176B: 2.3 TB from 48 nodes; 2 GB/s of each, of which the servers take 46 GB/s together."""
    site = tmp_path / "site.toml"
    text = '[[storage]]\nmount = "/lustre"\nread = 4e9\nwrite = 2e9\nwrite_total = 46e9\nsource = "fio of one node"\n'
    site.write_text(text)
    spec = ("--machine", "nvidia-dgx-a100", "--nodes", "48", "--site", str(site))
    job = "bloom-176b,tp=4,pp=12,micro=2,recompute"
    assert "checkpoint    2.3 TB: 50 s to write to /lustre, 12 s to read" in run(f"{job},ckpt=2.3TB", *spec).output
    (one,) = json.loads(run(job, *spec, "--format", "json").output)["checkpoints"]
    assert one["size"] == pytest.approx(14 * 176.2e9, rel=0.01)
    site.write_text(text.replace("2e9", "2"))
    refused = run(job, *spec)
    assert refused.exit_code == 64
    assert "write: rates are bytes per second: 4.2e9 is 4.2 GB/s" in " ".join(refused.output.split())


def test_a_checkpoint_without_storage_says_what_is_needed() -> None:
    done = " ".join(run("llama3-8b,zero=3,recompute,ckpt=1TB", *DGX).output.split())
    assert "checkpoint 1 TB: its time is not known; describe the storage as [[storage]] in the site file" in done


def test_a_model_without_a_layout_gets_the_fastest_one() -> None:
    """The first question of most users. Without a layout, 70B do not fit."""
    alone, best = run("llama3-70b", *DGX), run("llama3-70b", *DGX, "--sweep", "--top", "1")
    assert alone.exit_code == 0
    layout, _, text = alone.output.splitlines()[2].partition(" ")
    assert re.fullmatch(r"\(the fastest of \d[\d ]* layouts that fit\)", text)
    assert layout in best.output
    named = run(f"llama3-70b,{layout}", *DGX)
    assert named.output.splitlines()[3:10] == alone.output.splitlines()[3:10]


def test_reads_of_training_data_on_storage_of_the_site_file(tmp_path: Path) -> None:
    """One read of 8192 x 4 bytes for each of 512 sequences of a step."""
    site = tmp_path / "site.toml"
    text = '[[storage]]\nmount = "/data"\nread = 4e9\nwrite = 2e9\niops = {}\nsource = "fio of one node"\n'
    job = ("llama3-8b,gbs=512,zero=3,recompute", "--machine", "nvidia-dgx-h100", "--nodes", "8", "--site", str(site))
    for iops, end in ((120e3, "it can serve 960,000"), (0.5, "it can serve 4: steps wait for their data")):
        site.write_text(text.format(iops))
        found = json.loads(run(*job, "--format", "json").output)
        (one,) = found["reads"]
        assert one["reads"] == pytest.approx(512 / found["steps"][0]["usual"])
        assert one["size"] == 8192 * 4
        assert end in " ".join(run(*job).output.split())


def test_file_systems_of_the_node_without_known_rates(tmp_path: Path) -> None:
    mounts = "10.0.0.7@tcp:/fsx /fsx lustre rw 0 0\nserver:/home /home nfs4 rw 0 0\n/dev/sda1 / ext4 rw 0 0\n"
    described, capture = tmp_path / "p5.toml", tmp_path / "p5.capture"
    text = (ROOT / "tests/nodes/p5-tree.toml").read_text()
    described.write_text(f'{text}\n[files]\n\'proc/1/mounts\' = """{mounts}"""\n')
    assert CliRunner().invoke(main, ["capture", "--synthetic", str(described), str(capture)]).exit_code == 0
    done = " ".join(run("llama3-8b,zero=3,recompute", "--nodes", "2", "--from", str(capture)).output.split())
    assert "/fsx is Lustre, at an unknown rate; a published example has 1.18 GB/s for a node" in done
    assert "/home is NFS, at an unknown rate. For the time of checkpoints" in done


def test_the_time_of_a_whole_training() -> None:
    """Steps of it one after another: LLaMA-3 405B, 15.6T tokens on 16 384 H100; Meta says 54 days and more."""
    job = "llama3-405b,tp=8,pp=16,interleave=7,tokens=16M"
    done = run(job, "--machine", "nvidia-dgx-h100", "--nodes", "2048", "--train", "15.6T")
    assert "training      15.6T tokens take 61.7 days, if nothing ever fails" in done.output


def test_json_has_what_the_text_has() -> None:
    plan = json.loads(run(JOB, *DGX, "--format", "json").output)
    assert plan["steps"][0]["as"] == "tp=8,pp=1,dp=64,zero=3,micro=8,recompute"
    assert (plan["binds"], plan["cluster"]["gpus"], plan["job"]["tokens"]) == ("tensor", 512, 4 << 20)
    assert set(plan["steps"][0]["waits"]) == {"tensor", "data"}
    assert plan["better"]["usual"] < plan["steps"][0]["usual"]
    many = json.loads(run("llama3-8b", *DGX, "--sweep", "--format", "json").output)
    assert len(many["steps"]) == 10


@pytest.mark.slow
def test_pictures(tmp_path: Path) -> None:
    for number, arguments in enumerate((["--sweep"], [])):
        path = tmp_path / f"{number}.svg"
        job = "llama3-8b" if arguments else "llama3-8b,zero=3"
        assert run(job, *DGX, *arguments, "--plot", str(path)).exit_code == 0
        assert path.read_text().startswith("<svg ")
    refused = run("llama3-8b", *DGX, "--sweep", "--plot", str(tmp_path / "missing" / "x.svg"))
    assert refused.exit_code == 64
    assert "No such file or directory" in refused.output


@pytest.mark.slow
def test_without_the_extra_it_says_how_to_get_it() -> None:
    """In a child process that cannot import pandas."""
    program = (
        "import sys; sys.modules['pandas'] = None\n"
        "from linkgauge.agent.inputs.site_file import BadInput\n"
        "from linkgauge.agent.cli.model.plan_api import frame, plan\n"
        "from linkgauge.agent.cli.model.cluster_spec import ClusterSpec\n"
        "try:\n"
        "    frame(plan('llama3-8b,zero=3', ClusterSpec('nvidia-dgx-h100', 64)))\n"
        "except BadInput as wrong:\n"
        "    print(wrong)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "linkgauge[frames]" in done.stdout


@pytest.mark.slow
def test_tables_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    spec = ClusterSpec("nvidia-dgx-h100", 64)
    one = plan(JOB, spec)
    parts = frame(one)
    assert isinstance(parts, pandas.DataFrame)
    assert parts["waited"].sum() == pytest.approx(one.step.usual)
    assert parts["share"].sum() == pytest.approx(1)
    first, found = sweep("llama3-8b", spec, best=7)
    layouts = frame(found)
    assert len(layouts) == 7
    assert layouts["seconds"].is_monotonic_increasing
    assert layouts.loc[0, "seconds"] == first.step.usual
    assert {"tensor", "pipeline", "data", "expert", "zero", "binds", "memory", "utilisation"} <= set(layouts.columns)


def test_programs_get_sentences_too() -> None:
    with pytest.raises(BadInput, match="tp=16 does not divide|tp x pp = 16 does not divide 8 GPUs"):
        plan("llama3-8b,tp=16", ClusterSpec("nvidia-dgx-h100"))
    with pytest.raises(BadInput, match="no machine type is called 'dgx'"):
        sweep("llama3-8b", ClusterSpec("dgx"))


def test_help_needs_no_model() -> None:
    """The help imports no catalog, table or chart library."""
    program = (
        "import sys\n"
        "from linkgauge.agent.cli.main import main\n"
        "try:\n    main(['plan', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = [name for name in sys.modules if name.split('.')[0] in ('numpy', 'pandas', 'jinja2')"
        " or name.startswith('linkgauge.models')]\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
