"""A server that speaks the protocol of NCCL's RAS subsystem over TCP (NVIDIA/nccl src/ras/client_support.cc)."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

Report: TypeAlias = Callable[[int], Iterator[bytes]]  # of the number of the query to the pieces that the server sends
OPERATIONS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")


@contextmanager
def ras_server(report: Report, formats: bool = True) -> Iterator[tuple[str, list[list[str]]]]:
    """Its "HOST:PORT", and the commands of each connection. `formats`: it knows SET FORMAT (NCCL 2.28.7)."""
    said: list[list[str]] = []

    class Client(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            said.append(lines := [])
            for line in self.rfile:
                lines.append(line.decode().strip())
                word = lines[-1].lower()
                if word == "verbose status":
                    for piece in report(len(said)):
                        self.wfile.write(piece)
                    return
                self.wfile.write(f"{_answer(word, formats)}\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """The client closed the connection."""

    with Server(("127.0.0.1", 0), Client) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", said
        finally:
            server.shutdown()
            thread.join()


def _answer(word: str, formats: bool) -> str:
    if word.startswith("client protocol "):
        return "SERVER PROTOCOL 2"
    known = word.startswith("timeout ") or (formats and word.startswith("set format "))
    return "OK" if known else f"ERROR: Unknown command {word}"


def job(
    hosts: Sequence[str], late: Mapping[int, int], dead: Sequence[int] = (), counted: int = 815, per_host: int = 8
) -> dict[str, Any]:
    """The JSON report of a job with `per_host` ranks on each host. `late`: rank -> AllReduce operations."""
    known = {rank: (hosts[rank // per_host], rank % per_host) for rank in range(len(hosts) * per_host)}
    about = {
        rank: {"rank": rank, "host": host, "pid": 4600 + rank, "cuda_dev": gpu, "nvml_dev": gpu}
        for rank, (host, gpu) in known.items()
    }
    status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
    counts = {rank: {**dict.fromkeys(OPERATIONS, 0), "AllReduce": late.get(rank, counted)} for rank in known}
    ranks = [{**about[rank], "status": status, "collective_counts": counts[rank]} for rank in known if rank not in dead]
    missing = [{**about[rank], "status": {"unresponsive": True, "considered_dead": True}} for rank in dead]
    communicator = {"hash": "0xa9b4c2d1e0f38765", "secondary_hash": "0x1:0x2", "size": len(known)}
    lists = {"ranks_count": len(ranks), "missing_ranks_count": len(missing), "ranks": ranks, "missing_ranks": missing}
    return {
        "nccl_version": "2.28.7+cuda13.0",
        "cuda_runtime_version": 13000,
        "cuda_driver_version": 13000,
        "timestamp": "2026-11-20 10:00:00",
        "communicators_count": 1,
        "communicators": [{**communicator, **lists}],
        "ras": {"collection_time_sec": 0.002, "timeouts_count": 0},
    }


def as_bytes(report: Mapping[str, Any]) -> bytes:
    """The report as RAS prints it."""
    return f"{json.dumps(report, indent=2)}\n".encode()
