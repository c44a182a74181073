"""One rank of a data-parallel job over TCP: all_reduces with the same port of other nodes, timed as NCCL's Inspector.

Arguments: the rank, the number of nodes, of ports per node, of steps, bytes of the gradients, and the folder of the
file. Rank r runs on node r // ports and has the address 192.168.214.(r + 1). Each step reduces the gradients in each
pair of nodes with both ranks of a pair as a ring, and then the loss over all ranks.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PORT = 7000
_DEADLINE = 30.0  # seconds, of each call
_BUFFER = 1 << 17  # bytes of a socket: what waits in it when a rank arrives counts as transferred in no time
Peers = Mapping[int, socket.socket]


def main(rank: int, nodes: int, ports: int, steps: int, size: int, folder: str) -> None:
    """Run all steps and write the file of this rank."""
    with suppress(OSError):  # other processes must not take the processors: their time would count as the network's
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    pairs = [pair for port in range(ports) for pair in combinations(range(port, nodes * ports, ports), 2)]
    peers = connected(rank, {*pairs, *((0, other) for other in range(1, nodes * ports))})
    times: dict[tuple[int, ...], list[float]] = {}
    for _ in range(steps):
        for pair in (pair for pair in pairs if rank in pair):
            gradients = np.full(size // 4, rank, np.float32)
            began = time.perf_counter()
            reduce_in_pair(peers[sum(pair) - rank], gradients, pair.index(rank))
            times.setdefault(pair, []).append(time.perf_counter() - began)
            assert (gradients == sum(pair)).all()
        began = time.perf_counter()
        reduce_loss(rank, peers, nodes * ports)
        times.setdefault(tuple(range(nodes * ports)), []).append(time.perf_counter() - began)
    sizes = {ranks: size if len(ranks) == 2 else 8 for ranks in times}
    lines = [line for ranks in times for line in inspector_lines(rank, ranks, sizes[ranks], times[ranks], ports)]
    Path(folder, f"rank{rank}-pid{os.getpid()}.log").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def connected(rank: int, pairs: set[tuple[int, int]]) -> Peers:
    """A connection to each rank of these pairs. The higher rank of a pair connects."""
    found = {}
    with socket.socket() as server:
        _limit(server)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of a job before may still close
        server.bind(("", _PORT))
        server.listen()
        for lower in sorted(low for low, high in pairs if high == rank):
            found[lower] = _connection(lower)
            found[lower].sendall(bytes([rank]))
        for _ in [high for low, high in pairs if low == rank]:
            accepted, _ = server.accept()
            accepted.settimeout(_DEADLINE)
            found[accepted.recv(1)[0]] = accepted
    return found


def _connection(rank: int) -> socket.socket:
    end = time.monotonic() + _DEADLINE
    while True:
        made = socket.socket()
        _limit(made)
        try:
            made.connect((f"192.168.214.{rank + 1}", _PORT))
            return made
        except OSError:  # it does not listen yet
            made.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _limit(made: socket.socket) -> None:
    made.settimeout(_DEADLINE)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        made.setsockopt(socket.SOL_SOCKET, option, _BUFFER)


def reduce_in_pair(peer: socket.socket, values: NDArray[np.float32], place: int) -> None:
    """A ring of two ranks: each sums one half, then both exchange the sums."""
    halves = np.split(values, 2)
    other = np.empty_like(halves[0])
    _exchange(peer, halves[1 - place], other)
    halves[place] += other
    _exchange(peer, halves[place], halves[1 - place])


def _exchange(peer: socket.socket, sent: NDArray[np.float32], received: NDArray[np.float32]) -> None:
    sender = Thread(target=peer.sendall, args=(sent.data.cast("B"),))
    sender.start()
    rest = received.data.cast("B")
    while rest:
        rest = rest[peer.recv_into(rest) or sys.exit("a rank has ended") :]
    sender.join()


def reduce_loss(rank: int, peers: Peers, ranks: int) -> None:
    """Rank 0 sums eight bytes of each rank and sends the sum."""
    if rank:
        peers[0].sendall(rank.to_bytes(8, "big"))
        total = peers[0].recv(8, socket.MSG_WAITALL)
    else:
        parts = (peers[other].recv(8, socket.MSG_WAITALL) for other in range(1, ranks))
        total = sum(int.from_bytes(part, "big") for part in parts).to_bytes(8, "big")
        for other in range(1, ranks):
            peers[other].sendall(total)
    assert int.from_bytes(total, "big") == sum(range(ranks))


def inspector_lines(
    rank: int, ranks: Sequence[int], size: int, times: Sequence[float], ports: int
) -> Iterator[dict[str, Any]]:
    """The lines of one communicator, format v4.3. `times`: seconds of each operation."""
    yield {
        "header": {
            "id": "-".join(map(str, ranks)),
            "rank": ranks.index(rank),
            "n_ranks": len(ranks),
            "nnodes": len({one // ports for one in ranks}),
        },
        "metadata": {
            "inspector_output_format_version": "v4.3",
            "dump_timestamp_us": int(time.time() * 1e6),
            "hostname": f"node{rank // ports}",
            "pid": os.getpid(),
        },
        "dump_stats": {"coll_records": len(times), "p2p_records": 0},
    }
    for number, seconds in enumerate(times):
        yield {
            "coll_perf": {
                "coll": "AllReduce",
                "coll_algo": "RING" if len(ranks) == 2 else "TREE",
                "coll_proto": "SIMPLE",
                "coll_sn": number,
                "coll_msg_size_bytes": size,
                "coll_exec_time_us": round(seconds * 1e6),
                "coll_timing_source": "kernel_gpu",
            }
        }


if __name__ == "__main__":
    own, *numbers = map(int, sys.argv[1:6])
    main(own, numbers[0], numbers[1], numbers[2], numbers[3], sys.argv[6])
