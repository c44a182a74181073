"""Context parallelism, low precision, schedules without bubbles, and messages of experts, by their sources."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from linkgauge.models.bandwidth.message_times import Pace, pace_of, seconds
from linkgauge.models.bandwidth.network_tiers import group
from linkgauge.models.catalog import machines
from linkgauge.models.catalog.networks import networks
from linkgauge.models.training import transformer_sizes as sizes
from linkgauge.models.training.cluster import Cluster, cluster_of
from linkgauge.models.training.expert_messages import exchange
from linkgauge.models.training.job_spec import read_job
from linkgauge.models.training.layouts import layouts
from linkgauge.models.training.memory import memory_of
from linkgauge.models.training.parallelism import Impossible, Job, Layout, check, violations
from linkgauge.models.training.planner import binding, plan_of, sweep
from linkgauge.models.training.roofline import bubble, state_bytes, zero_bubble
from linkgauge.models.training.step_time import step_of

LLAMA = Job(networks()["llama3-70b"], 256 * 8192, 8192)
LONG = Job(networks()["llama3-70b"], 64 * 131072, 131072)
DEEPSEEK = Job(networks()["deepseek-v3"], 15360 * 4096, 4096)


def cluster(machine: str, nodes: int) -> Cluster:
    return cluster_of(next(one for one in machines() if one.name == machine), nodes)


POD = cluster("nvidia-dgx-h100", 32)
H800 = cluster("nvidia-dgx-h100", 256)


def test_idle_times_of_schedules() -> None:
    """DeepSeek-V3 technical report, table 2, with F = W = 1 and B = 2: 45, 15 and 14 of 16 stages."""
    for m in (16, 64, 480):
        busy = 3 * m
        assert bubble(16, m) == pytest.approx(45 / (busy + 45))
        assert zero_bubble(16, m) == pytest.approx(15 / (busy + 15))
        assert zero_bubble(16, m, both_ends=True) == pytest.approx(14 / (busy + 14))
    assert zero_bubble(2, 8, both_ends=True) == 0


def test_context_ranks_share_tokens_and_gather_keys_and_values() -> None:
    """llama3-70b: 8 heads of 128 for keys and values, in bf16; forward once, backward again and the gradients."""
    layout = Layout(8, 1, 4, zero=3, context=8, recompute=True)
    step = step_of(LONG, layout, POD)
    pace = pace_of("all_gather", group(POD.levels, 8, 8), POD.algorithms, POD.inside, POD.switched)
    size = 2 * 2 * 8 * 128 * 131072 / 8
    assert step.waits["context"].seconds == pytest.approx(80 * 16 * 4 * seconds(pace, size))
    assert step.waits["context"].shown == 0  # attention to the other parts takes longer
    whole = replace(layout, context=1, data=32)
    assert memory_of(LONG, layout).activations == pytest.approx(memory_of(LONG, whole).activations / 8)
    assert memory_of(LONG, layout).states == memory_of(LONG, whole).states
    more = LONG.sequences // 4 - LONG.sequences // 32  # micro-batches, which add their gradients in fp32
    gradients = 8 * sizes.outside_experts(LONG.network) / 8 * more / (POD.gpu.memory_rate or 0)
    assert step.compute - gradients == pytest.approx(step_of(LONG, whole, POD).compute)


def test_a_sweep_divides_long_sequences_only() -> None:
    assert {one.context for one in layouts(LLAMA, POD)} == {1}
    assert {one.context for one in layouts(LONG, POD)} == {1, 2, 4, 8, 16}
    assert {one.context for one in layouts(LLAMA, POD, fixed={"context": 2})} == {2}
    assert sweep(LONG, POD).best[0].layout.context > 1


@pytest.mark.parametrize(("machine", "gain"), [("nvidia-dgx-h100", 1.5), ("nvidia-dgx-b200", 1.5)])
def test_fp8_doubles_the_rate_of_products_alone(machine: str, gain: float) -> None:
    """Attention, output matrix and what is no product stay. So a step gains less than 2."""
    where = cluster(machine, 8)
    layout = Layout(4, 4, 4)
    plain, low = (step_of(LLAMA, replace(layout, precision=name), where).compute for name in ("bf16", "fp8"))
    assert plain / low == pytest.approx(gain, abs=0.1)


def test_the_limit_of_tensor_parallelism_in_fp8_is_half() -> None:
    plain, low = (plan_of(LLAMA, Layout(8, 4, 8, precision=name), POD).tensor_limit for name in ("bf16", "fp8"))
    assert low == pytest.approx(plain / 2, rel=0.01)


def test_a_gpu_without_fp8_is_refused() -> None:
    where = cluster("nvidia-dgx-a100", 8)
    for call in (
        lambda: plan_of(LLAMA, Layout(8, 2, 4, precision="fp8"), where),
        lambda: sweep(LLAMA, where, fixed={"precision": "fp8"}),
    ):
        with pytest.raises(Impossible, match="A100 SXM4 80GB has no rate in fp8: it has bf16, so leave fp8 out"):
            call()


def test_a_token_crosses_the_network_once_per_node() -> None:
    """64 ranks on 8 nodes, 8 experts on at most 4 nodes: 3.15 other nodes, instead of 6.6 other GPUs of other nodes."""
    layout = Layout(1, 16, 128, 64)
    flat, held = exchange(DEEPSEEK, layout, H800, pace)
    once, between = exchange(DEEPSEEK, replace(layout, per_node=True), H800, pace)
    copies = 4 * (1 - (3 / 4) ** 8) * 7 / 8
    far = group(H800.levels, 64)[1:]
    size = 8 * 2 * 4096 * 7168 * copies * 64 / 7
    assert once == pytest.approx(seconds(pace_of("alltoall", far, H800.algorithms, H800.inside), size))
    assert (held, between) == ("fabric", "fabric")
    assert flat / once > 2
    low, _ = exchange(DEEPSEEK, replace(layout, per_node=True, precision="fp8"), H800, pace)
    assert once / low == pytest.approx(4 / 3, rel=0.1)  # results return in bf16
    inside = replace(layout, expert=8)
    near, _ = exchange(DEEPSEEK, replace(inside, per_node=True), H800, pace)
    assert near == pytest.approx(exchange(DEEPSEEK, inside, H800, pace)[0])


def pace(ranks: int) -> Pace:
    return pace_of("alltoall", group(H800.levels, ranks), H800.algorithms, H800.inside)


def test_dualpipe_hides_expert_messages_and_stores_two_stages() -> None:
    usual = Layout(1, 16, 128, 64, recompute=True, per_node=True)
    dual = replace(usual, schedule="dualpipe")
    before, after = (step_of(DEEPSEEK, one, H800) for one in (usual, dual))
    assert before.waits["expert"].shown == before.waits["expert"].seconds
    assert after.waits["expert"].shown < 0.05 * after.usual
    assert after.bubble < before.bubble / 2
    assert after.usual < 0.75 * before.usual
    assert memory_of(DEEPSEEK, dual).states > memory_of(DEEPSEEK, usual).states
    assert memory_of(LLAMA, Layout(4, 4, 16, zero=0, schedule="dualpipe")).states == pytest.approx(
        2 * memory_of(LLAMA, Layout(4, 4, 16, zero=0)).states
    )


def test_the_output_matrix_belongs_to_the_last_stage() -> None:
    """llama3-8b: as much as 2.3 layers of 8 in a stage, so sharing it over the stages gains a fifth."""
    job = Job(networks()["llama3-8b"], 256 * 8192, 8192)
    last, shared = (step_of(job, Layout(1, 4, 64, vocabulary=on), POD).compute for on in (False, True))
    assert last / shared == pytest.approx(1.1, abs=0.05)
    assert step_of(job, Layout(1, 1, 256, zero=3), POD).compute == pytest.approx(shared)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("llama3-70b,cp=3,tp=8", "cp=3: 8192 tokens of a sequence do not divide into 6 parts"),
        ("llama3-70b,tp=8,zb", "zb requires a pipeline"),
        ("llama3-70b,tp=8,pp=4,zb,interleave=2", "zb and interleave exclude each other"),
        ("llama3-70b,tp=8,pp=16,zb,gbs=16", "zb needs at least pp=16 micro-batches, not 8"),
        ("llama3-70b,tp=8,pp=4,dualpipe,gbs=48", "dualpipe needs an even pp and an even number .* 2 x pp: not 6"),
        ("llama3-70b,tp=8,vocab", "vocab requires a pipeline"),
        ("deepseek-v3,pp=16,deepep", "deepep requires expert parallelism"),
        ("deepseek-v3,pp=16,overlap", "overlap requires expert parallelism"),
        ("deepseek-v3,pp=16,ep=16,fused", "fused requires a model with experts, and fp8 or fp4"),
        ("llama3-70b,tp=8,fp8,fused", "fused requires a model with experts, and fp8 or fp4"),
        ("deepseek-v3,tp=2,pp=64,ep=16", "ep=16 does not divide tp=2 x dp=2: the GPUs .* so at most ep=4"),
    ],
)
def test_layouts_that_programs_refuse(line: str, says: str) -> None:
    spec = read_job(line).suited(256, 32)
    layout = spec.layout(spec.fields.get("context", 1) * 256)
    assert any(re.search(says, sentence) for sentence in violations(spec.job, layout, 256))


def test_groups_of_queries_divide() -> None:
    """Megatron-LM: the groups are a multiple or a divisor of the tensor ranks."""
    odd = Job(replace(networks()["llama3-70b"], heads=48, kv_heads=6), 64 * 8192, 8192)
    assert "tp=4: neither a divisor nor a multiple of the 6 key and value heads" in set(
        violations(odd, Layout(4, 1, 2), 8)
    )
    assert not list(violations(odd, Layout(2, 1, 4), 8))
    assert {one.tensor for one in layouts(odd, cluster("nvidia-dgx-h100", 1))} == {1, 2}


@pytest.mark.parametrize(
    ("line", "sequences"),
    [("deepseek-v3,pp=16,ep=64", 1024), ("deepseek-v3,pp=16,ep=64,zb", 2048), ("deepseek-v3,pp=16,dualpipe", 4096)],
)
def test_the_usual_batch_suits_the_layout(line: str, sequences: int) -> None:
    """2048 GPUs, 128 data ranks: a micro-batch for each stage with zb, two with dualpipe."""
    spec = read_job(line).suited(2048, 256, sweep=False)
    assert spec.job.sequences == sequences
    assert not list(violations(spec.job, spec.layout(2048), 2048))


def test_words_of_a_layout_are_read_again() -> None:
    line = "deepseek-v3,tp=1,cp=2,pp=16,dp=64,ep=64,fp8,dualpipe,deepep,vocab,recompute"
    layout = read_job(line).layout(2048)
    assert str(read_job(f"deepseek-v3,{layout}").layout(2048)) == str(layout)
    assert (layout.context, layout.precision, layout.schedule) == (2, "fp8", "dualpipe")
    assert layout.per_node
    assert layout.vocabulary
    assert layout.recompute
    with pytest.raises(ValueError, match="fp8 and fp4 exclude each other"):
        read_job("llama3-8b,fp8,fp4")
    found = sweep(DEEPSEEK, H800, fixed={"schedule": "dualpipe", "per_node": True, "precision": "fp8"})
    assert {(one.layout.schedule, one.layout.per_node, one.layout.precision) for one in found.best} == {
        ("dualpipe", True, "fp8")
    }


def test_some_layers_of_a_stage_can_be_recomputed() -> None:
    """Megatron-LM --recompute-num-layers: between no layer and all, in time and in memory; 20 layers a stage."""
    spec = read_job("llama3-70b,tp=8,pp=4,gbs=512,recompute=5")
    layout = spec.layout(64)
    assert str(layout) == "tp=8,pp=4,dp=2,recompute=5"
    assert read_job(f"llama3-70b,{layout},gbs=512").layout(64) == layout
    h100 = cluster("nvidia-dgx-h100", 8)
    steps = [
        step_of(spec.job, replace(layout, recompute=on, recomputed=layers), h100)
        for on, layers in ((False, 0), (True, 5), (True, 10), (True, 20))
    ]
    assert [one.compute for one in steps] == sorted({one.compute for one in steps})
    assert [one.memory.total for one in steps] == sorted({one.memory.total for one in steps}, reverse=True)
    assert steps[-1].compute == step_of(spec.job, replace(layout, recomputed=0), h100).compute
    assert steps[1].compute - steps[0].compute == pytest.approx((steps[3].compute - steps[0].compute) / 4)
    assert read_job("llama3-70b,recompute=0").layout(8) == Layout(data=8)
    with pytest.raises(Impossible, match="a stage has 20 layers"):
        check(spec.job, replace(layout, recomputed=21), 64)


OSS = Job(networks()["gpt-oss-120b"], 1 << 20, 1024)


def test_mixtures_with_little_work_wait_for_the_host() -> None:
    """12.2 ms for each layer with experts and micro-batch. CUDA graphs launch less; dense models do not wait."""
    layout = Layout(data=64, expert=8)
    slow, some, quick = (step_of(OSS, replace(layout, graphs=on), POD) for on in ("none", "attention", "step"))
    assert slow.waits["launch"].seconds == pytest.approx(12.2e-3 * 36 * 16)
    assert some.waits["launch"].seconds == pytest.approx(0.75 * slow.waits["launch"].seconds)
    more = quick.waits["data"].shown - slow.waits["data"].shown  # gradients overlap with the launches
    assert slow.waits["launch"].shown - more == pytest.approx(slow.usual - quick.usual)
    assert binding(slow)[0] == "launch" != binding(quick)[0]
    again = step_of(OSS, replace(layout, recompute=True), POD)
    assert again.waits["launch"].seconds == pytest.approx(slow.waits["launch"].seconds * 4 / 3)
    for job, other in ((OSS, quick.layout), (OSS, replace(layout, micro=8)), (LLAMA, Layout(8, data=64))):
        assert "launch" not in step_of(job, other, POD).waits


def test_messages_to_experts_overlap_with_compute() -> None:
    """Seven tenths at most."""
    usual = Layout(data=64, expert=64, graphs="step", micro=4)
    alone, beside = (step_of(OSS, replace(usual, overlap=on), POD) for on in (False, True))
    assert alone.waits["expert"].shown == alone.waits["expert"].seconds == beside.waits["expert"].seconds
    left = max(0.3 * alone.waits["expert"].seconds, alone.waits["expert"].seconds - beside.compute)
    assert beside.waits["expert"].shown == pytest.approx(left)


def test_experts_are_whole_on_neighbouring_gpus_of_a_stage() -> None:
    """Megatron Core with expert tensor parallelism of 1: 32 ranks of experts are 4 nodes, with tp=1 as with tp=2."""
    job, states, times = Job(networks()["deepseek-v3"], 8192 * 4096, 4096), [], []
    for tensor in (1, 2):
        layout = Layout(tensor, 8, 32 // tensor, expert=32, zero=0)
        took, _ = exchange(job, layout, H800, pace)
        times.append(took * tensor)  # a tensor rank sends its part of the tokens
        states.append(memory_of(job, layout).states)
    assert times[0] == pytest.approx(times[1], rel=0.05)  # but for the startup time
    others = sizes.outside_experts(job.network) * 8 / 61 + sizes.embedding(job.network)  # only these are halved
    assert states[0] - states[1] == pytest.approx(state_bytes(others / 2, 32, 0))
    assert Layout(8).expert_shards == Layout(1, expert=8).expert_shards == 8


def test_programs_launch_and_move_less() -> None:
    """What a program does with experts shortens the step; one kernel for all experts works in fp8 and fp4 only."""
    usual = Layout(data=64, expert=64)
    steps = [step_of(OSS, layout, POD) for layout in (usual, replace(usual, per_node=True))]
    assert steps[1].waits["launch"].seconds == pytest.approx(0.7 * steps[0].waits["launch"].seconds)
    for precision in ("bf16", "fp8"):
        plain, fused = (step_of(OSS, replace(usual, precision=precision, fused=on), POD).moved for on in (False, True))
        assert (fused < plain) == (precision == "fp8")
    biased = Job(replace(OSS.network, expert_biases=False), OSS.tokens, OSS.sequence)
    assert step_of(biased, usual, POD).moved < steps[0].moved
