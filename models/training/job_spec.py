"""The job specification, one line of text: "llama3-70b,tp=8,pp=4,dp=64,tokens=4M"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from ..catalog.networks import networks
from .parallelism import SHORT_NAMES, Impossible, Job, Layout

TOKENS = 1 << 22  # per step, by default
_FLAG = "recompute"
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([kmgbt]?)", re.IGNORECASE)
_CHECKPOINT = re.compile(r"ckpt=(\d{1,6}(?:\.\d{1,3})?)([GT])B?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "b": 3, "t": 4}


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A parsed line: the job and its degrees of parallelism."""

    job: Job
    fields: Mapping[str, int]  # by field of Layout
    text: str = ""
    checkpoint: float | None = None  # bytes

    def layout(self, gpus: int) -> Layout:
        """The layout over `gpus` GPUs. Without dp, the remaining GPUs are for data. Impossible: the GPU count is not
        divisible.
        """
        fields = dict(self.fields)
        others = fields.get("tensor", 1) * fields.get("pipeline", 1)
        if "data" not in fields and others:
            if gpus % others:
                raise Impossible(f"tp x pp = {others} does not divide {gpus} GPUs")
            fields["data"] = gpus // others
        recompute = bool(fields.pop(_FLAG, 0))
        return Layout(**fields, recompute=recompute)


def read_job(text: str) -> JobSpec:
    """The job of a line. ValueError carries a sentence about the unknown part."""
    name, *parts = [part.strip() for part in text.split(",")]
    if name not in networks():
        near = get_close_matches(name, networks(), 1)
        hint = f"did you mean {near[0]!r}?" if near else "known are"
        raise ValueError(f"no model is called {name!r}; {hint} {'' if near else ', '.join(networks())}".rstrip())
    network = networks()[name]
    values: dict[str, int] = {}
    checkpoint: float | None = None
    for part in parts:
        if part.startswith("ckpt"):
            checkpoint = _bytes(part)
            continue
        key, value = _part(part)
        if key in values:
            raise ValueError(f"{key} is given twice")
        values[key] = value
    job = Job(network, values.pop("tokens", TOKENS), values.pop("seq", network.sequence))
    if job.tokens < 1 or job.sequence < 1:
        raise ValueError("tokens and seq must be at least 1")
    return JobSpec(job, {SHORT_NAMES.get(key, key): value for key, value in values.items()}, text, checkpoint)


def _bytes(part: str) -> float:
    """Bytes of "ckpt=2.3TB". ValueError: another format."""
    read = _CHECKPOINT.fullmatch(part.replace(" ", ""))
    if read is None:
        raise ValueError(f"{part!r}: the size of a checkpoint is written ckpt=2.3TB or ckpt=140GB")
    return float(read[1]) * (1e12 if read[2].upper() == "T" else 1e9)


def _part(text: str) -> tuple[str, int]:
    key, equals, value = (piece.strip() for piece in text.partition("="))
    if key == _FLAG and not equals:
        return key, 1
    if key not in (*SHORT_NAMES, "tokens", "seq"):
        known = ", ".join((*SHORT_NAMES, "tokens", "seq", "ckpt"))
        raise ValueError(f"{text!r} is not part of a job: write {known} with a number, or {_FLAG}")
    return key, read_number(value, key)


def read_number(text: str, what: str) -> int:
    """ "4M" as 4 x 2^20, "16k" as 16 x 2^10: powers of two, so that whole sequences divide them. ValueError: no whole
    number.
    """
    read = _NUMBER.fullmatch(text)
    if read is None:
        raise ValueError(f"{what}={text}: not a number: write 4096, 16k, 4M or 1.5M")
    number = float(read[1]) * 1024 ** _POWERS[read[2].lower()]
    if number != int(number) or number > 1e18:
        raise ValueError(f"{what}={text}: not a whole number, or too large")
    return int(number)
