"""The main loop of `linkgauge serve`: start, cycles, reload on SIGHUP, end on SIGTERM."""

from __future__ import annotations

import logging
import resource
import signal
import socket
import sys
import time
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from types import FrameType

from msgspec import Struct

from ...models.diagnosis.hysteresis import stale_findings
from ...probes.calls.worker import Workers
from ...probes.host.guarded import Guarded
from ...probes.host.host import Host, Unreadable
from ...probes.network.port_traffic import PortTraffic
from ...probes.redfish import Controller
from ...probes.system.node import BOOT_ID
from ..inputs import resolve as inputs
from ..inputs import site_file
from ..inputs.redfish_file import read_controller
from ..inputs.site_file import BadInput
from ..pipeline.cycle import Memory
from ..pipeline.source import Source
from ..state import acceptance, inventory_file, status_file
from ..web.config import read_config as read_web_config
from ..web.pages import Pages
from ..web.server import Server, serving
from . import checkpoint, logs
from .config import LISTEN, Config, key_of, read_config, seconds
from .daemon import Daemon
from .push import close_all, publishers
from .systemd import notify, sockets_of_systemd
from .yielding import relax_garbage_collection, yield_after_bursts

_CHANGE_ADDRESS = "and set ListenStream= with 'systemctl edit linkgauge.socket'"
_POLL = 1.0  # seconds between two checks for release requests and two readings of port counters
_REST = 0.02  # seconds of sleep between two CPU bursts
# Seconds after which a thread hands over the interpreter. A cycle computes in another thread than the web server, which
# waits this long after each of its system calls. Python's default is 5 ms.
_SWITCH = 0.0005
_log = logging.getLogger("linkgauge")


class _Stop(BaseException):
    """A signal ends the service. It is no Exception, so that no handler of our own catches it as a fault."""


class ServeOptions(Struct, frozen=True, kw_only=True):
    """The options of the command line. They override the configuration."""

    listen: str | None = None
    config: str | None = None
    state_dir: str | None = None
    root: str = "/"
    source: str | None = None  # a capture instead of this machine


@dataclass
class _Signals:
    """The signals that arrived since the last check."""

    end: bool = False
    reload: bool = False

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Interrupt the work at the first signal; later signals do not interrupt the shutdown."""
        if not self.end:
            self.end = True
            raise _Stop

    def request_reload(self, number: int, frame: FrameType | None) -> None:
        self.reload = True


def serve(options: ServeOptions) -> None:
    """Run until a signal ends the service. Raises BadInput if it cannot start."""
    signals = _Signals()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signals.stop)
    signal.signal(signal.SIGHUP, signals.request_reload)
    with suppress(_Stop):
        _raise_descriptor_limit()
        sys.setswitchinterval(_SWITCH)
        _serve(options, signals)
    _log.info("ended")


def _raise_descriptor_limit() -> None:
    """Allow this process as many file descriptors as its hard limit (getrlimit(2))."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # a sandbox may refuse it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _serve(options: ServeOptions, signals: _Signals) -> None:
    config = read_config(options.config)
    site = site_file.site(config.site, given_by=key_of(options.config, "site"))
    workers = Workers()
    host = Guarded(inputs.replayed(options.source) if options.source else inputs.live(options.root, workers).host)
    logs.configure(config.log, config.log_format)
    folder = acceptance.folder_of(options.root, options.state_dir)
    with ExitStack() as stack:
        lock = stack.enter_context(checkpoint.exclusive(folder))
        memory = _memory(options, folder, host)
        stale, cycle = stale_findings(memory.histories), seconds(config.cycle)
        pages = Pages(site.labels, config.detail, cycle, findings=stale, gate=site.gate)
        server, traffic = stack.enter_context(_serving(options, config, pages)), PortTraffic()
        daemon = Daemon(
            host,
            config,
            site,
            pages,
            folder,
            memory,
            pause=yield_after_bursts(_sleep_between_bursts),
            forget=host.forget,
            stuck=lambda: workers.stuck,
            traffic=traffic.peaks,
            peaks=status_file.stored_peaks(folder),
            publishers=publishers(config, folder),
        )
        stack.callback(lambda: close_all(daemon.publishers))
        daemon.redfish.configure(_controller(options, config), seconds(config.redfish.every))
        _log.info("serving http://%s:%d/metrics", *server.address[:2])
        try:
            _run(daemon, lock, host, workers, traffic, signals, options, server)
        finally:
            notify("STOPPING=1")
            daemon.hang_guard.close()
            daemon.recorder.close()
            workers.close()
            host.close()
            if daemon.report is not None:
                daemon.save()


def _controller(options: ServeOptions, config: Config) -> Controller | None:
    """The management controller that the configuration names, or None. Raises BadInput."""
    file = config.redfish.file
    return read_controller(file, key_of(options.config, "[redfish] file")) if file else None


def _serving(options: ServeOptions, config: Config, pages: Pages) -> AbstractContextManager[Server]:
    """The web server. Errors of its address name the option, or the file and the key."""
    listen, given_by = options.listen or config.listen, "--listen"
    if not options.listen and listen != LISTEN:
        given_by = key_of(options.config, "listen")
    sockets = sockets_of_systemd()
    if not sockets:
        return serving(listen, pages, config.web, given_by=given_by)
    if len(sockets) > 1 or sockets[0].family not in (socket.AF_INET, socket.AF_INET6):
        raise BadInput("linkgauge.socket: give one ListenStream= with an address and a port, or only a port")
    if listen != LISTEN:
        raise BadInput(f"{given_by} {listen}: linkgauge.socket has the address: remove this one, {_CHANGE_ADDRESS}")
    return serving(sockets[0], pages, config.web)


def _run(
    daemon: Daemon,
    lock: checkpoint.Lock,
    host: Guarded,
    workers: Workers,
    traffic: PortTraffic,
    signals: _Signals,
    options: ServeOptions,
    server: Server,
) -> None:
    """Run cycles until a signal ends the service."""
    relax_garbage_collection()
    while not signals.end:
        lock.renew()
        _run_cycle(daemon, host)
        _wait(daemon, workers, traffic, signals)
        if signals.reload:
            signals.reload = False
            _reload(daemon, options, server)


def _memory(options: ServeOptions, folder: str, host: Host) -> Memory:
    """The memory of the last run, with the present boot. Its findings are stale until the first cycle."""
    accepted = acceptance.of(options.root, (), folder, host.now())
    boot_id = None
    with suppress(Unreadable):
        boot_id = (host.read(BOOT_ID) or "").strip() or None
    inventory, last = inventory_file.load(folder, accepted, boot_id)
    memory = Memory(baseline=accepted.baseline, accepted=accepted.at, boot_id=boot_id, inventory=inventory, last=last)
    return checkpoint.load(folder, memory, host.now())


def _sleep_between_bursts() -> None:
    """Sleep during a cycle. The deadline of each source is shorter than that of systemd's watchdog."""
    notify("WATCHDOG=1")
    time.sleep(_REST)


def _run_cycle(daemon: Daemon, host: Guarded) -> None:
    """Run one cycle. A fault of our own is logged and does not end the service; the pages report it later."""
    try:
        report = daemon.cycle()
    except Exception:
        _log.exception("a cycle failed (bug in linkgauge): please report it, with a capture")
        status = "a bug in linkgauge: see the log"
    else:
        status = f"{report.verdict}, {len(report.findings)} findings"
    host.look()
    notify(f"READY=1\nWATCHDOG=1\nSTATUS={status}")


def _wait(daemon: Daemon, workers: Workers, traffic: PortTraffic, signals: _Signals) -> None:
    """Wait until the next cycle is due. Release requests are handled at least once, even if the cycle is overdue."""
    until = daemon.began + daemon.every
    while True:
        left = until - time.monotonic()
        time.sleep(max(0.0, min(left, _POLL)))
        workers.release()
        if daemon.busy:
            daemon.hang_guard.collect((Source("traffic", traffic.sample),), daemon.host)
        if signals.reload or signals.end or left <= _POLL:
            return


def _reload(daemon: Daemon, options: ServeOptions, server: Server) -> None:
    """Read all files again. If one is wrong, nothing changes and the error is logged."""
    notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
    try:
        config = read_config(options.config)
        site = site_file.site(config.site, given_by=key_of(options.config, "site"))
        controller = _controller(options, config)
        web = read_web_config(config.web)
        daemon.publishers = publishers(config, daemon.folder, daemon.publishers)
    except BadInput as wrong:
        _log.error("not reloaded, the old configuration stays in force: %s", wrong)
        notify("READY=1")
        return
    if config.listen != daemon.config.listen and options.listen is None:
        _log.warning("listen = %r takes effect after a restart", config.listen)
    logs.configure(config.log, config.log_format)
    server.configure(web)
    daemon.config, daemon.site = config, site
    daemon.redfish.configure(controller, seconds(config.redfish.every))
    daemon.pages.configure(site.labels, config.detail, site.gate)
    accepted = acceptance.of(options.root, (), daemon.folder, daemon.host.now())
    daemon.memory = checkpoint.with_acceptance(daemon.memory, accepted)
    _log.info("reloaded")
    notify("READY=1")
