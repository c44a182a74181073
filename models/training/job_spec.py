"""The job specification, one line of text: "llama3-70b,tp=8,pp=4,dp=64,tokens=4M"."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from msgspec import Struct, field
from msgspec.structs import replace

from ..catalog.networks import networks
from ..site.schema import Network
from .parallelism import FLAGS, SHORT_NAMES, Impossible, Job, Layout

TOKENS = 1 << 22  # per step, by default
_TOKENS_PER_GPU = 1024
_BATCH = ("tokens", "gbs", "seq")
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,6})?(?:e\+?\d{1,2})?)([kmgbt]?)", re.IGNORECASE)
_CHECKPOINT = re.compile(r"ckpt=(\d{1,6}(?:\.\d{1,3})?)([GT])B?", re.IGNORECASE)
_SHORT = {name: short for short, name in SHORT_NAMES.items()}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "b": 3, "t": 4}


class JobSpec(Struct, frozen=True):
    """A parsed line: the job and its degrees of parallelism."""

    job: Job
    fields: Mapping[str, int]  # by field of Layout
    text: str = ""
    checkpoint: float | None = None  # bytes
    batch: bool = True  # the line has the tokens of a step
    flags: Mapping[str, bool | str] = field(default_factory=dict)  # by field of Layout

    def suited(self, gpus: int, nodes: int, sweep: bool = True) -> JobSpec:
        """The same with a usual batch, if the line has none: at least 4M tokens and 1024 for each GPU (LLaMA-3 405B:
        16M on 16 384), in sequences that divide over the GPUs or nodes; for one layout over its data ranks.
        """
        if self.batch:
            return self
        fields, wanted = self.fields, max(TOKENS, _TOKENS_PER_GPU * gpus) // self.job.sequence
        unit = gpus if gpus <= wanted else nodes
        if not sweep or "data" in fields or "micro" in fields or "interleave" in fields:
            stages = fields.get("pipeline", 1)
            data = fields.get("data") or gpus // (fields.get("tensor", 1) * fields.get("context", 1) * stages)
            unit = data * fields.get("micro", 1) * self._rounds(stages)
        sequences = max(1, -(-wanted // max(1, unit))) * max(1, unit)
        return replace(self, job=replace(self.job, tokens=sequences * self.job.sequence))

    def _rounds(self, stages: int) -> int:
        """Micro-batches of each data rank come in multiples of this."""
        schedule = self.flags.get("schedule")
        if schedule == "dualpipe":
            return 2 * stages
        return stages if schedule or self.fields.get("interleave", 1) > 1 else 1

    def layout(self, gpus: int) -> Layout:
        """The layout over `gpus` GPUs. Without dp, the remaining GPUs are for data. Impossible: the GPU count is not
        divisible.
        """
        fields = dict(self.fields)
        names = [name for name in ("tensor", "context", "pipeline") if name != "context" or name in fields]
        others = math.prod(fields.get(name, 1) for name in names)
        if "data" not in fields and others:
            if gpus % others:
                near = gpus - gpus % others
                shown = " x ".join(_SHORT[name] for name in names)
                hint = f"; {near} and {near + others} GPUs are possible" if near else f"; at least {others} are needed"
                raise Impossible(f"{shown} = {others} does not divide {gpus} GPUs{hint}")
            fields["data"] = gpus // others
        return replace(Layout(), **fields, **self.flags)


def read_job(text: str, further: Iterable[Network] = ()) -> JobSpec:
    """The job of a line. `further`: models beside those of the catalog. ValueError carries a sentence about the unknown
    part.
    """
    name, *parts = [part.strip() for part in text.split(",")]
    network = _network(name, {**networks(), **{one.name: one for one in further}})
    values: dict[str, int] = {}
    flags: dict[str, bool | str] = {}
    checkpoint: float | None = None
    for part in parts:
        if part.lower().startswith("ckpt"):
            checkpoint = _bytes(part)
            continue
        if part.lower() in FLAGS:
            key, word = FLAGS[part.lower()]
            if flags.get(key, word) != word:
                raise ValueError(f"{flags[key]} and {word} exclude each other")
            flags[key] = word
            continue
        key, value = _part(part)
        if key in values:
            raise ValueError(f"{key} is given twice")
        values[key] = value
    if values.get("recompute"):
        flags["recompute"] = True
    if "tokens" in values and "gbs" in values:
        raise ValueError("tokens and gbs exclude each other: gbs is the number of sequences per step")
    batch = "tokens" in values or "gbs" in values
    sequence = values.pop("seq", network.sequence)
    sequences = values.pop("gbs", None)
    tokens = values.pop("tokens", TOKENS) if sequences is None else sequences * sequence
    job = Job(network, tokens, sequence)
    if job.tokens < 1 or job.sequence < 1:
        raise ValueError("tokens, gbs and seq must be at least 1")
    fields = {SHORT_NAMES.get(key, key): value for key, value in values.items()}
    return JobSpec(job, fields, text, checkpoint, batch, flags)


def _network(name: str, known: Mapping[str, Network]) -> Network:
    """The model with this name, in any case. ValueError: there is none."""
    plain = {one.lower(): network for one, network in known.items()}
    if name.lower() in plain:
        return plain[name.lower()]
    near = get_close_matches(name.lower(), plain, 1)
    hint = f"did you mean {plain[near[0]].name!r}?" if near else f"known are {', '.join(known)}"
    raise ValueError(f"no model is called {name!r}; {hint}; a config.json or [[network]] in the site file adds others")


def _bytes(part: str) -> float:
    """Bytes of "ckpt=2.3TB". ValueError: another format."""
    read = _CHECKPOINT.fullmatch(part.replace(" ", ""))
    if read is None:
        raise ValueError(f"{part!r}: the size of a checkpoint is written ckpt=2.3TB or ckpt=140GB")
    return float(read[1]) * (1e12 if read[2].upper() == "T" else 1e9)


def _part(text: str) -> tuple[str, int]:
    key, _, value = (piece.strip() for piece in text.partition("="))
    key = key.lower()
    if key not in (*SHORT_NAMES, *_BATCH):
        known = ", ".join((*SHORT_NAMES, *_BATCH, "ckpt"))
        raise ValueError(f"{text!r} is not part of a job: write {known} with a number, or {', '.join(FLAGS)}")
    return key, read_number(value, key)


def read_number(text: str, what: str) -> int:
    """ "4M" as 4 x 2^20, "16k" as 16 x 2^10: powers of two, so that whole sequences divide them. "4e6" and "4_000_000"
    are plain numbers. ValueError: no whole number.
    """
    read = _NUMBER.fullmatch(text.replace("_", ""))
    if read is None:
        raise ValueError(f"{what}={text}: not a number: write 4096, 16k, 4M or 4e6")
    number = float(read[1]) * 1024 ** _POWERS[read[2].lower()]
    if number != int(number) or number > 1e18:
        raise ValueError(f"{what}={text}: not a whole number, or too large")
    return int(number)
