"""Storage of a training job as text: its checkpoint, the reads of its data, and file systems without known rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...models.catalog.filesystems import FileSystem
from ...models.training.checkpoint import Checkpoint
from ...models.training.input_data import Reading
from .terminal import hanging, safe


class Stored(Struct, frozen=True):
    """Checkpoints and reads on the file systems of the site file; mount points that it does not describe."""

    checkpoints: Sequence[Checkpoint] = ()
    readings: Sequence[Reading] = ()
    mounts: Sequence[tuple[str, FileSystem]] = ()
    asked: float | None = None  # bytes of the checkpoint that the job names


NOTHING_STORED = Stored()


def storage_lines(stored: Stored, width: int, label: int) -> Iterator[str]:
    """One line for each checkpoint, file system with reads, and mount point."""
    for one in stored.checkpoints:
        times = f"{duration(one.write)} to write to {safe(one.mount)}, {duration(one.read)} to read"
        yield from hanging(f"{'checkpoint':<{label}}", f"{one.size / 1e12:.3g} TB: {times}", width)
    if stored.asked and not stored.checkpoints:
        text = (
            f"{stored.asked / 1e12:.3g} TB: its time is not known; describe the storage as [[storage]] in the site file"
        )
        yield from hanging(f"{'checkpoint':<{label}}", text, width)
    for read in stored.readings:
        yield from hanging(f"{'data':<{label}}", _read(read), width)
    for mount, system in stored.mounts:
        yield from hanging(f"{'storage':<{label}}", _unknown(mount, system), width)


def _read(one: Reading) -> str:
    needed = f"{one.reads:,.3g} random reads of {one.size / 1e3:.3g} kB a second from {safe(one.mount)}"
    allowed = f"it can serve {one.possible:,.0f}"
    return f"{needed}; {allowed}" + (": steps wait for their data" if one.reads > one.possible else "")


def _unknown(mount: str, system: FileSystem) -> str:
    example = "" if system.rate is None else f"; a published example has {system.rate / 1e9:.3g} GB/s for a node"
    return (
        f"{safe(mount)} is {system.name}, at an unknown rate{example}. For the time of checkpoints, measure it and "
        "describe it as [[storage]] in the site file"
    )


def duration(value: float) -> str:
    """ "12.3 s", "456 ms"."""
    if value >= 1:
        return f"{value:.3g} s" if value < 1000 else f"{value:.0f} s"
    return f"{value * 1e3:.3g} ms"
