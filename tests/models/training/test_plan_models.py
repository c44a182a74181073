"""Models of trainings: sizes of public models, memory, steps, layouts and sweeps."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.bandwidth.collective_algorithms import Algorithms
from linkgauge.models.bandwidth.collectives import bus_bandwidth
from linkgauge.models.bandwidth.message_times import pace_of, seconds
from linkgauge.models.bandwidth.network_tiers import group
from linkgauge.models.catalog import machines
from linkgauge.models.catalog.accelerators import accelerators
from linkgauge.models.catalog.gpus import products
from linkgauge.models.catalog.networks import networks
from linkgauge.models.training import transformer_sizes as sizes
from linkgauge.models.training.cluster import Cluster, UnknownValue, cluster_of
from linkgauge.models.training.cluster_fabric import Switches
from linkgauge.models.training.collective_time import Request, collective_of
from linkgauge.models.training.hugging_face import network_of
from linkgauge.models.training.job_spec import read_job
from linkgauge.models.training.layouts import layouts
from linkgauge.models.training.memory import USABLE, check_memory, memory_of
from linkgauge.models.training.parallelism import Impossible, Job, Layout, check, divides_stages, violations
from linkgauge.models.training.planner import binding, other, plan_of, sweep, training_seconds
from linkgauge.models.training.step_time import step_of

NETWORKS = networks()
LLAMA_405B = Job(NETWORKS["llama3-405b"], 2048 * 8192, 8192)


def cluster(machine: str, nodes: int, switches: Switches | None = None) -> Cluster:
    return cluster_of(next(one for one in machines() if one.name == machine), nodes, switches)


POD = cluster("nvidia-dgx-h100", 64)


@pytest.mark.parametrize("name", NETWORKS)
def test_sizes_give_the_published_parameters(name: str) -> None:
    assert sizes.parameters(NETWORKS[name]) == pytest.approx(NETWORKS[name].parameters, rel=0.01)


@pytest.mark.parametrize(("name", "active"), [("mixtral-8x7b", 12.9e9), ("deepseek-v3", 37e9), ("gpt-oss-120b", 5.1e9)])
def test_active_parameters_are_as_published(name: str, active: float) -> None:
    """From papers and model cards, which differ in whether the embedding counts."""
    assert sizes.active_parameters(NETWORKS[name]) == pytest.approx(active, rel=0.02)


def test_a_token_costs_two_for_each_parameter_and_attention() -> None:
    llama = NETWORKS["llama3-405b"]
    assert sizes.forward_flops(llama, 0) == 2 * sizes.active_parameters(llama)
    assert sizes.forward_flops(llama, 8192) / sizes.forward_flops(llama, 0) == pytest.approx(1.042, abs=1e-3)


def test_what_is_kept_of_a_layer() -> None:
    """With F = 4D, no gates and as many heads of keys 20 D, of the 34 D that Korthikanti and others keep."""
    bloom = NETWORKS["bloom-176b"]
    assert sizes.activation_bytes(bloom) == pytest.approx(2 * (2 + 4 + 4) * bloom.width)


def test_the_catalog_of_accelerators_fits_the_others() -> None:
    names = {one.name for one in products()}
    known = [one.name for one in machines()]
    for fitted in accelerators().fitted:
        assert fitted.gpu in names
        assert set(fitted.machines) <= set(known)
    assert all(one.reached is None or 0.4 < one.reached / one.flops < 1 for one in accelerators().accelerator)


def test_clusters_of_machine_types() -> None:
    assert [(one.name, one.children, one.rate / 1e9) for one in POD.levels] == [("node", 8, 450), ("fabric", 64, 400)]
    assert (POD.gpus, POD.switched, POD.flops, POD.reached) == (512, True, 989e12, 794.5e12)
    racks = cluster("nvidia-gb200-tray", 36)
    assert [(one.children, one.rate / 1e9) for one in racks.levels] == [(72, 900), (2, 3600)]
    assert len(cluster("nvidia-dgx-h100", 1).levels) == 1
    tree = cluster("nvidia-dgx-h100", 128, Switches(64, 50e9, 2.0, rails=True))
    assert [one.name for one in tree.levels] == ["node", "leaf", "spine"]


@pytest.mark.parametrize(
    ("machine", "nodes", "says"),
    [
        ("nvidia-dgx-h100", 0, "0 nodes: at least one node is required"),
        ("dell-xe9680", 2, "has various GPUs; read such a node"),
        ("mi300x-8", 2, "the rate of its NICs is not known; give it as --network"),
    ],
)
def test_unknown_clusters(machine: str, nodes: int, says: str) -> None:
    with pytest.raises(UnknownValue, match=says):
        cluster(machine, nodes)


def test_of_one_node_the_nics_do_not_matter() -> None:
    assert cluster("mi300x-8", 1).levels[0].rate == 448e9


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        (Layout(16, 1, 16), "tp=16 x pp=1 x dp=16 is 256 GPUs, not 512"),
        (Layout(128, 1, 4), "tp=128 does not divide the 64 heads of llama3-70b"),
        (Layout(12, 1, 1), "tp=12 does not divide the 64 heads"),
        (Layout(4, 128, 1), "pp=128 x interleave=1 is more than the 80 layers of llama3-70b"),
        (Layout(8, 1, 64, interleave=2), "interleave requires a pipeline"),
        (Layout(8, 8, 8, interleave=2, micro=16), r"interleave=2 needs micro-batches \(4\) in multiples of pp=8"),
        (Layout(1, 1, 512, micro=3), "512 sequences in a step do not divide into dp=512 x micro=3"),
        (Layout(8, 1, 64, expert=2), "ep=2: llama3-70b has no experts"),
        (Layout(8, 1, 64, zero=4), "zero=4: 0 shards nothing"),
        (Layout(0, 1, 64), "tp, cp, pp, dp, ep, micro and interleave must be at least 1"),
    ],
)
def test_layouts_that_cannot_be(layout: Layout, says: str) -> None:
    job = Job(NETWORKS["llama3-70b"], 512 * 8192, 8192)
    assert any(re.search(says, sentence) for sentence in violations(job, layout, 512))
    with pytest.raises(Impossible):
        check(job, layout, 512)


def test_experts_and_batches_that_do_not_divide() -> None:
    mixtral = Job(NETWORKS["mixtral-8x7b"], 512 * 4096, 4096)
    assert list(violations(mixtral, Layout(1, 1, 512, 3), 512)) == [
        "ep=3 does not divide the 8 experts of mixtral-8x7b"
    ]
    assert list(violations(mixtral, Layout(1, 1, 4, 8), 4)) == [
        "ep=8 does not divide tp=1 x dp=4: the GPUs of a stage share the experts, so at most ep=4"
    ]
    uneven = replace(mixtral, tokens=1000)
    assert list(violations(uneven, Layout(), 1)) == [
        "1000 tokens are not a multiple of the sequence length 4096: write gbs=1 (tokens=4096)"
    ]


def test_memory_that_does_not_fit_says_what_needs_it() -> None:
    job = Job(NETWORKS["llama3-70b"], 512 * 8192, 8192)
    with pytest.raises(Impossible, match=r"memory: \d+ GB on each GPU .* of weights.* H100 SXM5 80GB has 81 to use"):
        check_memory(memory_of(job, Layout(8, 1, 64, zero=0)), POD)


def test_zero_takes_what_the_paper_says() -> None:
    """16 bytes a parameter; 4, 8 and N times less over many GPUs."""
    job = Job(NETWORKS["llama3-8b"], 4096 * 8192, 8192)
    states = [memory_of(job, Layout(1, 1, 4096, zero=stage)).states for stage in range(4)]
    assert states[0] == pytest.approx(16 * (NETWORKS["llama3-8b"].parameters or 0), rel=0.01)
    assert [states[0] / one for one in states] == pytest.approx([1, 4, 8, 4096], rel=0.01)


def test_sharded_weights_move_half_as_much_again() -> None:
    """The ZeRO paper: 1.5 times the traffic of gradients alone, for each micro-batch; and layers are short messages."""
    each = (
        {op: replace(one, startup=0.0, share=0.8) for op, one in known.items()}
        for known in (POD.algorithms.near, POD.algorithms.far)
    )
    at_once = replace(POD, algorithms=Algorithms(*each))
    job = Job(NETWORKS["llama3-405b"], 512 * 8192, 8192)

    def data(stage: int, where: Cluster, times: int = 1) -> float:
        layout = Layout(1, 1, 512, zero=stage)
        return step_of(replace(job, tokens=times * job.tokens), layout, where).waits["data"].seconds

    assert data(1, at_once) == data(2, at_once) == pytest.approx(data(0, at_once))
    assert data(3, at_once) / data(1, at_once) == pytest.approx(1.5)
    assert data(3, POD) / data(1, POD) > 1.5
    assert data(3, POD, 2) == pytest.approx(2 * data(3, POD))
    assert data(2, POD, 2) == pytest.approx(1.5 * data(2, POD))
    assert data(1, POD, 2) == data(1, POD)


def test_pairs_of_a_mesh_have_their_own_links_alone() -> None:
    """Two of eight MI300X reach 47.7 GB/s, eight 312.9 (ML-engineering, network); two of four A100 72.8, four 212.9."""
    for machine, nodes, reached in (("mi300x-8", 1, (47.7, 312.9)), ("hpe-cray-ex235n", 1, (72.8, 212.9))):
        one = cluster(machine, nodes)
        for ranks, rate in zip((2, one.gpus), reached, strict=True):
            pace = pace_of("all_reduce", group(one.levels, ranks), one.algorithms, one.inside)
            bus = bus_bandwidth("all_reduce", ranks, 1e12, seconds(pace, 1e12)) / 1e9
            assert bus == pytest.approx(rate, rel=0.12)


def test_published_layouts_fit_and_are_found_again() -> None:
    """LLaMA-3 405B on 16 384 H100 (tp 8, pp 16, dp 128), DeepSeek-V3 on 2048 (pp 16, ep 64), BLOOM on 384 A100."""
    many = cluster("nvidia-dgx-h100", 2048)
    llama = Layout(8, 16, 128, interleave=7)
    assert plan_of(LLAMA_405B, llama, many).step.memory.total < USABLE * many.memory
    assert llama in [step.layout for step in sweep(LLAMA_405B, many).best]
    deepseek = Job(NETWORKS["deepseek-v3"], 62_914_560, 4096)
    assert plan_of(deepseek, Layout(1, 16, 128, 64, recompute=True), cluster("nvidia-dgx-h100", 256)).step.usual > 0
    bloom = Job(NETWORKS["bloom-176b"], 2048 * 2048, 2048)
    assert plan_of(bloom, Layout(4, 12, 8, micro=2, recompute=True), cluster("nvidia-dgx-a100", 48)).step.usual > 0


@settings(max_examples=60)
@given(st.sampled_from(list(NETWORKS)), st.integers(0, 7), st.integers(8, 13), st.data())
def test_steps_of_any_layout(name: str, doublings: int, batch: int, data: st.DataObject) -> None:
    """Fastest, usual and slowest ascend; no utilisation is above what matrix products reach; parts make the whole."""
    many = cluster("nvidia-dgx-h100", 2**doublings)
    job = Job(NETWORKS[name], 2**batch * 2048, 2048)
    known = list(layouts(job, many))
    if not known:
        return
    layout = data.draw(st.sampled_from(known))
    assert list(violations(job, layout, many.gpus)) == []
    step = step_of(job, layout, many)
    assert 0 < step.fastest <= step.usual * (1 + 1e-9)
    assert step.usual <= step.slowest * (1 + 1e-9)
    assert 0 < step.utilisation < many.reached / many.flops
    parts = step.compute + step.bubble + step.update + sum(wait.shown for wait in step.waits.values())
    assert parts == pytest.approx(step.usual)
    assert 0 < binding(step)[1] <= 1
    assert str(read_job(f"{name},{layout}").layout(many.gpus)) == str(layout)


@settings(max_examples=30)
@given(st.floats(0.05, 1), st.sampled_from(["node", "fabric"]), st.integers(0, 500))
def test_a_slower_link_never_makes_a_step_faster(left: float, level: str, pick: int) -> None:
    job = Job(NETWORKS["mixtral-8x7b"], 512 * 4096, 4096)
    known = list(layouts(job, POD))
    layout = known[pick % len(known)]
    slow = tuple(replace(one, rate=one.rate * (left if one.name == level else 1)) for one in POD.levels)
    worse = step_of(job, layout, replace(POD, levels=slow))
    whole = step_of(job, layout, POD)
    assert worse.usual >= whole.usual * (1 - 1e-9)
    if [wait.held for wait in worse.waits.values()] == [wait.held for wait in whole.waits.values()]:
        assert worse.fastest >= whole.fastest * (1 - 1e-9)  # messages that different levels limit overlap
    assert worse.slowest >= whole.slowest * (1 - 1e-9)
    if left == 1:
        assert worse == whole


def test_a_sweep_gives_the_fastest_first() -> None:
    job = Job(NETWORKS["llama3-70b"], 1 << 22, 8192)
    found = sweep(job, POD, best=5)
    assert [step.usual for step in found.best] == sorted(step.usual for step in found.best)
    assert len(found.best) == 5 <= found.fit <= found.tried
    every = [
        step_of(job, one, POD).usual for one in layouts(job, POD) if memory_of(job, one).total <= USABLE * POD.memory
    ]
    assert found.best[0].usual == min(every)


def test_sweeps_that_find_nothing_say_why() -> None:
    with pytest.raises(Impossible, match=r"memory: none of \d+ layouts of llama3-405b fits into 8 x H100 SXM5 80GB"):
        sweep(Job(NETWORKS["llama3-405b"], 1 << 22, 8192), cluster("nvidia-dgx-h100", 1))
    with pytest.raises(Impossible, match=r"no layout divides 664 GPUs, 64 heads and 5 sequences"):
        sweep(Job(NETWORKS["llama3-70b"], 5 * 8192, 8192), cluster("nvidia-dgx-h100", 83))


def test_what_binds_and_which_layout_would_not() -> None:
    """8B parameters, sharded over nodes of 400 Gb/s, wait below 4700 tokens a GPU; a bigger batch does not."""
    job = Job(NETWORKS["llama3-8b"], 128 * 4096, 4096)
    slow = cluster("aws-p4de.24xlarge", 16)
    plan = plan_of(job, Layout(1, 1, 128, zero=3), slow)
    assert (plan.binds, plan.tokens) == ("data", 4096)
    assert plan.critical_tokens is not None
    assert plan.critical_tokens > plan.tokens
    better = other(job, slow, plan.step)
    assert better is not None
    assert better.usual < 0.95 * plan.step.usual
    big = plan_of(Job(NETWORKS["llama3-8b"], 1 << 26, 8192), Layout(1, 1, 128, zero=1), slow)
    assert big.binds == "compute"
    assert other(job, slow, better) is None


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_the_bound_of_data_parallelism_does_not_grow_with_the_batch(zero: int) -> None:
    """ZeRO-3 gathers weights in each micro-batch, so its tokens decide; 4 times the batch gave 4 times the bound."""
    one, four = (
        plan_of(Job(NETWORKS["llama3-8b"], times * 128 * 4096, 4096), Layout(4, 1, 128, zero=zero), POD)
        for times in (1, 4)
    )
    assert one.critical_tokens is not None
    assert four.critical_tokens is not None
    assert four.critical_tokens <= one.critical_tokens * (1 + 1e-9)
    assert (four.tokens, four.exchanged) == (4096, 1024 if zero > 1 else 4096)
    assert one.exchanged == one.tokens


def test_the_limit_of_tensor_parallelism_uses_the_selected_experts() -> None:
    """Each token of mixtral-8x7b uses 2 of 8 experts of width 14,336, as many columns as llama3-70b has: 28,672."""
    limits = [
        plan_of(Job(NETWORKS[name], 512 * 4096, 4096), Layout(8, 2, 32, zero=3), POD).tensor_limit
        for name in ("mixtral-8x7b", "llama3-70b")
    ]
    assert limits[0] == pytest.approx(limits[1])


def test_sequences_and_plain_numbers() -> None:
    """The part gbs is Megatron's --global-batch-size. Decimal numbers of tokens rarely divide into sequences."""
    specs = [
        read_job(f"GPT3-175B,TP=8,{batch}") for batch in ("gbs=1536", "tokens=3_145_728", "Tokens=3145728", "tokens=3M")
    ]
    assert {(spec.job.network.name, spec.job.tokens, spec.fields["tensor"]) for spec in specs} == {
        ("gpt3-175b", 3 << 20, 8)
    }
    near = violations(read_job("llama3-8b,tokens=4e6").job, Layout(1, 1, 8), 8)
    assert next(near) == (
        "4000000 tokens are not a multiple of the sequence length 8192: write gbs=488 (tokens=3997696)"
    )


@pytest.mark.parametrize(
    ("job", "nodes", "sequences"),
    [
        ("llama3-70b", 64, 512),  # 4M tokens
        ("llama3-70b", 3, 528),  # 22 for each of 24 GPUs; 512 do not divide
        ("llama3-405b", 2048, 2048),  # 16M tokens, as its authors; 4M recommended a layout with 68 % bubble
        ("llama3-70b,dp=24,micro=5", 3, 600),
        ("llama3-70b,pp=5,interleave=2", 5, 520),
        ("llama3-70b,gbs=7", 3, 7),
    ],
)
def test_a_job_without_a_batch_gets_one_that_divides(job: str, nodes: int, sequences: int) -> None:
    assert read_job(job).suited(8 * nodes, nodes).job.sequences == sequences


def test_parts_of_a_stage_are_whole() -> None:
    """Megatron-LM: the layers of a stage are a multiple of its parts. LLaMA-3 405B has 8 layers, 7 at both ends."""
    assert list(violations(Job(NETWORKS["llama3-70b"], 64 * 8192, 8192), Layout(8, 4, 1, interleave=3), 32)) == [
        "interleave=3 does not divide the 20 layers of a stage"
    ]
    assert divides_stages(NETWORKS["llama3-405b"], 16, 7)
    for one in layouts(Job(NETWORKS["llama3-70b"], 1 << 22, 8192), POD):
        assert one.interleave == 1 or 80 % (one.pipeline * one.interleave) == 0


@pytest.mark.parametrize(
    ("name", "config"),
    [
        (
            "mixtral-8x7b",
            {
                "model_type": "mixtral",
                "hidden_size": 4096,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "intermediate_size": 14336,
                "num_local_experts": 8,
                "num_experts_per_tok": 2,
                "vocab_size": 32000,
            },
        ),
        (
            "deepseek-v3",
            {
                "model_type": "deepseek_v3",
                "hidden_size": 7168,
                "num_hidden_layers": 61,
                "num_attention_heads": 128,
                "num_key_value_heads": 128,
                "intermediate_size": 18432,
                "moe_intermediate_size": 2048,
                "n_routed_experts": 256,
                "num_experts_per_tok": 8,
                "n_shared_experts": 1,
                "first_k_dense_replace": 3,
                "q_lora_rank": 1536,
                "kv_lora_rank": 512,
                "qk_nope_head_dim": 128,
                "qk_rope_head_dim": 64,
                "v_head_dim": 128,
                "vocab_size": 129280,
            },
        ),
        (
            "bloom-176b",
            {"model_type": "bloom", "n_layer": 70, "n_head": 112, "hidden_size": 14336, "vocab_size": 250880},
        ),
    ],
)
def test_a_config_of_hugging_face_has_the_sizes_of_the_model(name: str, config: dict[str, object]) -> None:
    """mistralai/Mixtral-8x7B-v0.1, deepseek-ai/DeepSeek-V3 and bigscience/bloom, config.json (huggingface.co)."""
    found, known = network_of(name, config), NETWORKS[name]
    assert sizes.parameters(found) == pytest.approx(sizes.parameters(known), rel=0.002)
    assert sizes.active_parameters(found) == pytest.approx(sizes.active_parameters(known), rel=0.002)
    assert (found.experts, found.active, found.gated) == (known.experts, known.active, known.gated)


def test_machine_types_without_a_cluster_are_few() -> None:
    """Types with various GPUs."""
    failing = set()
    for machine in machines():
        try:
            assert cluster_of(machine, 1).memory > 16e9, machine.name
        except UnknownValue:
            failing.add(machine.name)
    assert failing == {"azure-nd96is-v5", "dell-xe9680"}


def test_accelerators_beside_gpus() -> None:
    """Eight Gaudi 2 reach 258.2 GB/s of bus bandwidth (HabanaAI/hccl_demo). A pair of 16 Trainium2 has one link of 128
    GB/s, a row of four has two.
    """
    gaudi = cluster("gaudi2-8", 2)
    assert [(one.children, one.rate / 1e9, one.mesh) for one in gaudi.levels] == [(8, 262.5, True), (2, 300, False)]
    pace = pace_of("all_reduce", group(gaudi.levels, 8), gaudi.algorithms, gaudi.inside)
    assert bus_bandwidth("all_reduce", 8, 1e12, seconds(pace, 1e12)) / 1e9 == pytest.approx(258.2, rel=0.01)
    neuron = cluster("aws-trn2.48xlarge", 2)
    assert [group(neuron.levels, ranks)[0].rate / 1e9 for ranks in (2, 4, 16)] == [128, 256, 512]
    assert neuron.gpus == 32


@pytest.mark.parametrize(
    ("name", "rate", "measured"), [("azure-nc96ads-a100-v4", 31.5e9, 25e9), ("azure-nc48ads-a100-v4", 300e9, 238e9)]
)
def test_gpus_without_switches(name: str, rate: float, measured: float) -> None:
    """Azure/azurehpc-health-checks: at least 25 GB/s of AllReduce over PCIe, and 238 GB/s between a bridged pair."""
    where = cluster(name, 1)
    assert where.levels[0].rate == pytest.approx(rate, rel=1e-3)
    found = collective_of(Request("all_reduce", 1 << 30, where.gpus), where)
    assert found.low is not None
    assert found.high is not None
    assert found.low.bus_bandwidth <= measured <= found.high.bus_bandwidth


def test_training_time_is_steps_of_tokens() -> None:
    """LLaMA-3 405B: 3.8e25 FLOP on 16 384 H100 at 45 % are 62 days; Meta says 54 and more."""
    plan = plan_of(LLAMA_405B, Layout(8, 16, 128, interleave=7), cluster("nvidia-dgx-h100", 2048))
    assert training_seconds(LLAMA_405B, plan.step, 15.6e12) / 86400 == pytest.approx(62, rel=0.05)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("llama3-71b", "no model is called 'llama3-71b'; did you mean 'llama3-70b'"),
        ("", "no model is called ''; known are llama3-8b"),
        ("llama3-8b,tp", "'tp' is not part|tp=: not a number"),
        ("llama3-8b,tp=two", "tp=two: not a number"),
        ("llama3-8b,gpus=8", "'gpus=8' is not part of a job"),
        ("llama3-8b,tp=2,tp=4", "tp is given twice"),
        ("llama3-8b,tokens=0", "tokens, gbs and seq must be at least 1"),
        ("llama3-8b,tokens=4M,gbs=8", "tokens and gbs exclude each other"),
        ("llama3-9b", "no model is called 'llama3-9b'; did you mean 'llama3-8b'"),
        ("llama3-8b,tokens=1.0001", "not a whole number"),
    ],
)
def test_jobs_that_are_none(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_job(text)


@given(st.text(max_size=40))
def test_any_text_is_a_job_or_a_clear_error(text: str) -> None:
    with suppress(ValueError):
        assert read_job(f"llama3-8b,{text}").layout(64).gpus


def test_a_job_in_one_line() -> None:
    spec = read_job("llama3-70b, tp=8, pp=4, tokens=4M, seq=4k, recompute")
    assert (spec.job.tokens, spec.job.sequence) == (4 << 20, 4096)
    assert spec.layout(512) == Layout(8, 4, 16, recompute=True)
    with pytest.raises(Impossible, match="tp x pp = 24 does not divide 512 GPUs"):
        read_job("llama3-70b,tp=8,pp=3").layout(512)
