"""A server that implements the public protocol of NVSentinel's platform connector on a unix socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty

from linkgauge.exporters.events.protobuf import messages


class PlatformConnector(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    """Takes events. `refuse` gives the status of the next calls; while `hangs` is set, calls wait."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []  # the accepted events
        self.refuse: list[grpc.StatusCode] = []
        self.refused: list[int] = []  # the number of events of each call that was refused
        self.hangs = False
        self.hanging, self.go_on = Event(), Event()

    @property
    def events(self) -> list[Any]:
        return [event for batch in self.batches for event in batch]

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if details.method != "/datamodels.PlatformConnector/HealthEventOccurredV1":
            return None
        decode: Callable[[bytes], Any] = messages("health_event.proto")["HealthEvents"].FromString
        return grpc.unary_unary_rpc_method_handler(self._take, decode, Empty.SerializeToString)

    def _take(self, request: Any, context: grpc.ServicerContext) -> Empty:
        assert request.version == 1
        if self.hangs:
            self.hanging.set()
            self.go_on.wait(60)
        if self.refuse:
            self.refused.append(len(request.events))
            context.abort(self.refuse.pop(0), "not now")
        self.batches.append(list(request.events))
        return Empty()


@contextmanager
def platform_connector(folder: Path) -> Iterator[tuple[str, PlatformConnector]]:
    """Its address, and what it took."""
    connector = PlatformConnector()
    address = f"unix://{folder}/nvsentinel.sock"
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((connector,))
    assert server.add_insecure_port(address)
    server.start()
    try:
        yield address, connector
    finally:
        connector.go_on.set()
        server.stop(None).wait()
