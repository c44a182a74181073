"""`linkgauge serve` from its start to its end: what it is told, by files and by signals."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FrameType

from ..probes.careful import Careful
from ..probes.port_traffic import PortTraffic
from ..probes.worker import Workers
from . import inputs, kept, logs, state
from .config import read_config, seconds
from .daemon import Daemon
from .inputs import BadInput
from .pages import Pages
from .pipeline import Memory
from .systemd import notify
from .web import Server, serving

_GLANCE = 1.0  # seconds between two looks at what others ask for, and at the traffic of jobs
_PAUSE = 0.02  # seconds between sources: a burst of the processor is as long as one of them
_log = logging.getLogger("linkgauge")


class _Stop(BaseException):
    """Somebody asked the service to end. No Exception: nothing of ours may take it for a fault of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The options of the command line, which are in force over the configuration."""

    listen: str | None = None
    config: str | None = None
    state_dir: str | None = None
    root: str = "/"


def serve(told: Told) -> None:
    """Run until somebody ends it. Raises BadInput where it cannot begin."""
    config = read_config(told.config)
    site = inputs.site(config.site)
    workers = Workers()
    host = Careful(inputs.live(told.root, workers).host)
    logs.begin(config.log, config.log_format)
    pages = Pages(site.labels, config.detail, seconds(config.cycle))
    folder = state.folder_of(told.root, told.state_dir)
    memory = _memory(told, folder, host.now())
    traffic = PortTraffic(host)
    daemon = Daemon(
        host, config, site, pages, folder, memory, pause=lambda: time.sleep(_PAUSE), stuck=lambda: workers.stuck,
        traffic=traffic.peaks,
    )  # fmt: skip
    with serving(told.listen or config.listen, pages, config.web) as server:
        _log.info("serving http://%s:%d/metrics", *server.address[:2])
        try:
            _run(daemon, host, told, server, workers, traffic)
        except _Stop:
            _log.info("ended")
        finally:
            notify("STOPPING=1")
            workers.close()
            if daemon.report is not None:
                daemon.save()


def _memory(told: Told, folder: str, now: float) -> Memory:
    accepted = state.of(told.root, (), folder, now)
    return kept.load(folder, Memory(baseline=accepted.baseline, accepted=accepted.at), now)


def _run(
    daemon: Daemon, host: Careful, told: Told, server: Server, workers: Workers, traffic: PortTraffic
) -> None:  # fmt: skip
    reload = _signals()
    while True:
        begun = time.monotonic()
        report = daemon.cycle()
        host.look()
        notify(f"READY=1\nWATCHDOG=1\nSTATUS={report.verdict}, {len(report.findings)} findings")
        _write_textfile(daemon)
        while (left := begun + daemon.every - time.monotonic()) > 0:
            time.sleep(min(left, _GLANCE))
            workers.release()
            if daemon.busy:
                traffic.look()
            if reload():
                _reload(daemon, told, server)
                break


def _signals() -> Callable[[], bool]:
    """SIGTERM and Ctrl-C end the service wherever it is; whether SIGHUP came is asked for."""
    came: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Stop

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    signal.signal(signal.SIGHUP, lambda number, frame: came.append(number))

    def reload() -> bool:
        new = bool(came)
        came.clear()
        return new

    return reload


def _reload(daemon: Daemon, told: Told, server: Server) -> None:
    """Read all files again. One that is wrong changes nothing, and is told of."""
    notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
    try:
        config = read_config(told.config)
        site = inputs.site(config.site)
        server.configure(config.web)
    except BadInput as wrong:
        _log.error("not reloaded, all goes on as before: %s", wrong)
        notify("READY=1")
        return
    if config.listen != daemon.config.listen and told.listen is None:
        _log.warning("listen = %r is in force after a restart", config.listen)
    logs.begin(config.log, config.log_format)
    daemon.config, daemon.site = config, site
    daemon.pages.labelled(site.labels, config.detail)
    accepted = state.of(told.root, (), daemon.folder, daemon.host.now())
    daemon.memory = replace(daemon.memory, baseline=accepted.baseline, accepted=accepted.at)
    _log.info("reloaded")
    notify("READY=1")


def _write_textfile(daemon: Daemon) -> None:
    """For the collector of node_exporter, where the configuration names a file."""
    path = daemon.config.textfile
    if path is None:
        return
    from .whole_file import write_whole

    try:
        write_whole(os.path.abspath(path), daemon.pages.read("metrics"))
    except OSError as refused:
        _log.warning("%s: %s: not written", path, refused.strerror)
