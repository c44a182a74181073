"""A model from the config.json of Hugging Face's transformers.

The keys are those of the configuration classes (https://huggingface.co/docs/transformers/main_classes/configuration):
Llama, Mixtral, Qwen-MoE, DeepSeek and gpt-oss. GPT-2 and BLOOM name the same sizes n_layer, n_embd, n_head and n_inner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..site.schema import Network

_SEQUENCE = 8192  # most tokens of a sequence by default; the longest of a model belong to its last phase of training


def network_of(name: str, config: Mapping[str, Any]) -> Network:
    """The sizes of the model. ValueError: a size that the configuration lacks."""
    heads, width = _size(config, "num_attention_heads", "n_head"), _size(config, "hidden_size", "n_embd")
    experts = _size(config, "num_local_experts", "n_routed_experts", "num_experts", default=0)
    forward = _size(config, "intermediate_size", "n_inner", default=4 * width)
    kind = str(config.get("model_type", ""))
    layers = _size(config, "num_hidden_layers", "n_layer")
    dense = _size(config, "first_k_dense_replace", default=0)
    try:
        return Network(
            name=name,
            layers=layers,
            width=width,
            heads=heads,
            kv_heads=_size(config, "num_key_value_heads", default=heads),
            head=_size(config, "head_dim", default=width // heads),
            feed_forward=forward if not experts or dense else 0,
            gated=kind not in ("gpt2", "bloom", "gpt_neox", "opt", "falcon"),
            vocabulary=_size(config, "vocab_size"),
            tied=bool(config.get("tie_word_embeddings", kind in ("gpt2", "bloom"))),
            attention=_latent(config, width, heads) if config.get("kv_lora_rank") else None,
            experts=experts,
            active=_size(config, "num_experts_per_tok", "experts_per_token") if experts else 0,
            expert_width=_size(config, "moe_intermediate_size", default=forward) if experts else 0,
            shared=_size(config, "n_shared_experts", default=0),
            dense_layers=dense,
            expert_biases=kind == "gpt_oss",
            node_limit=_size(config, "topk_group", default=0),
            sequence=min(_SEQUENCE, _size(config, "max_position_embeddings", "n_positions", default=_SEQUENCE)),
            source="its config.json",
        )
    except ZeroDivisionError:
        raise ValueError("num_attention_heads is 0") from None


def _size(config: Mapping[str, Any], *names: str, default: int | None = None) -> int:
    """The first of these keys with a value. ValueError: there is none, or it is no whole number."""
    for name in names:
        value = config.get(name)
        if value is not None:
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 40:
                raise ValueError(f"{name} is {value!r}, not a whole number")
            return value
    if default is None:
        raise ValueError(f"has no {' or '.join(names)}: is it the config.json of a language model?")
    return default


def _latent(config: Mapping[str, Any], width: int, heads: int) -> int:
    """Parameters of one layer's multi-head latent attention (DeepSeek-V2, 2.1; DeepSeek-V3, 2.1.1)."""
    plain, turned = _size(config, "qk_nope_head_dim"), _size(config, "qk_rope_head_dim")
    value, latent = _size(config, "v_head_dim"), _size(config, "kv_lora_rank")
    rank = _size(config, "q_lora_rank", default=0)
    query = heads * (plain + turned)
    queries = rank * (width + query) if rank else width * query
    return queries + width * (latent + turned) + latent * heads * (plain + value) + heads * value * width
