"""`linkgauge serve` from its start to its end: what it is told, by files and by signals."""

from __future__ import annotations

import logging
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType

from ...probes.calls.worker import Workers
from ...probes.host.guarded import Guarded
from ...probes.network.port_traffic import PortTraffic
from ..inputs import resolve as inputs
from ..inputs.resolve import BadInput
from ..pipeline.diagnose import Memory
from ..pipeline.source import Source
from ..state import acceptance as state
from ..state import status_file as last
from ..web.pages import Pages
from ..web.server import Server, serving
from . import checkpoint as kept
from . import logs
from .config import read_config, seconds
from .daemon import Daemon
from .systemd import notify
from .yielding import in_bursts, look_less_for_garbage

_GLANCE = 1.0  # seconds between two looks at what others ask for, and at the traffic of jobs
_REST = 0.02  # seconds between two bursts
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
    source: str | None = None  # a capture instead


@dataclass
class _Signals:
    """What was asked for by signals since somebody looked."""

    end: bool = False
    reload: bool = False

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Break off whatever is done; but only once: what is done at the end is done to the end."""
        if not self.end:
            self.end = True
            raise _Stop

    def again(self, number: int, frame: FrameType | None) -> None:
        self.reload = True


def serve(told: Told) -> None:
    """Run until somebody ends it. Raises BadInput where it cannot begin."""
    signals = _Signals()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signals.stop)
    signal.signal(signal.SIGHUP, signals.again)
    with suppress(_Stop):
        _serve(told, signals)
    _log.info("ended")


def _serve(told: Told, signals: _Signals) -> None:
    config = read_config(told.config)
    site = inputs.site(config.site)
    workers = Workers()
    host = Guarded(inputs.replayed(told.source) if told.source else inputs.live(told.root, workers).host)
    logs.begin(config.log, config.log_format)
    pages = Pages(site.labels, config.detail, seconds(config.cycle))
    folder = state.folder_of(told.root, told.state_dir)
    with kept.alone(folder), serving(told.listen or config.listen, pages, config.web) as server:
        traffic = PortTraffic()
        daemon = Daemon(
            host,
            config,
            site,
            pages,
            folder,
            _memory(told, folder, host.now()),
            pause=in_bursts(_rest),
            forget=host.forget,
            stuck=lambda: workers.stuck,
            traffic=traffic.peaks,
            peaks=last.peaks_of(folder),
        )
        _log.info("serving http://%s:%d/metrics", *server.address[:2])
        look_less_for_garbage()
        try:
            while not signals.end:
                _round(daemon, host)
                _wait(daemon, workers, traffic, signals)
                if signals.reload:
                    signals.reload = False
                    _reload(daemon, told, server)
        finally:
            notify("STOPPING=1")
            daemon.hang_guard.close()
            workers.close()
            host.close()
            if daemon.report is not None:
                daemon.save()


def _memory(told: Told, folder: str, now: float) -> Memory:
    accepted = state.of(told.root, (), folder, now)
    return kept.load(folder, Memory(baseline=accepted.baseline, accepted=accepted.at), now)


def _rest() -> None:
    """In the middle of a cycle. Each source has a deadline, which is shorter than that of systemd's watchdog."""
    notify("WATCHDOG=1")
    time.sleep(_REST)


def _round(daemon: Daemon, host: Guarded) -> None:
    """One cycle. A fault of our own ends no service: it is logged, and after some such cycles the pages say so too."""
    try:
        report = daemon.cycle()
    except Exception:
        _log.exception("a cycle broke off, which is a fault in linkgauge itself: please report it, with a capture")
        status = "a fault in linkgauge itself: see the log"
    else:
        status = f"{report.verdict}, {len(report.findings)} findings"
    host.look()
    notify(f"READY=1\nWATCHDOG=1\nSTATUS={status}")


def _wait(daemon: Daemon, workers: Workers, traffic: PortTraffic, signals: _Signals) -> None:
    """Until the next cycle is due; also where that is at once, what others ask for is done first."""
    until = daemon.began + daemon.every
    while True:
        left = until - time.monotonic()
        time.sleep(max(0.0, min(left, _GLANCE)))
        workers.release()
        if daemon.busy:
            daemon.hang_guard.ask((Source("traffic", traffic.sample),), daemon.host)
        if signals.reload or signals.end or left <= _GLANCE:
            return


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
