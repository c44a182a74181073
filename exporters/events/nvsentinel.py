"""Health events over gRPC, as NVSentinel's platform connector and gpud accept them (health_event.proto)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...models.facts.units import from_utc
from .health_events import HealthEvent
from .protobuf import messages

if TYPE_CHECKING:
    import grpc

AGENT = "linkgauge"
METHOD = "/datamodels.PlatformConnector/HealthEventOccurredV1"
_SECONDS = 5.0
_FINAL = ("INVALID_ARGUMENT", "OUT_OF_RANGE", "ALREADY_EXISTS")  # statuses of a message that is never taken
_STORE_ONLY, _REMEDIATE = "STORE_ONLY", "EXECUTE_REMEDIATION"


class Unavailable(Exception):
    """The receiver did not take the events. They may be sent again: the receiver knows duplicates."""


class EventsRefused(Exception):
    """The receiver refused the content of the events, and will do so again."""


class Receiver:
    """A connection to a receiver at "unix:///var/run/nvsentinel/nvsentinel.sock". It connects at the first call."""

    def __init__(self, address: str) -> None:
        """Raises ImportError without grpcio and protobuf."""
        import grpc
        from google.protobuf.empty_pb2 import Empty

        self._types = messages("health_event.proto")
        self._channel: grpc.Channel = grpc.insecure_channel(address)
        self._call: Callable[..., Any] = self._channel.unary_unary(
            METHOD, request_serializer=lambda one: one.SerializeToString(), response_deserializer=Empty.FromString
        )

    def send(self, events: Iterable[HealthEvent], node: str, at: str | None, seconds: float = _SECONDS) -> None:
        """Send the events. Raises Unavailable, EventsRefused."""
        import grpc

        several = self._types["HealthEvents"](version=1)
        several.events.extend(self._types["HealthEvent"](**fields(one, node)) for one in events)
        for one in several.events if at else ():
            one.generatedTimestamp.FromNanoseconds(round(from_utc(at or "") * 1e9))
        try:
            self._call(several, timeout=seconds)
        except grpc.RpcError as error:
            code = error.code()
            text = f"{code.name}: {error.details()}"
            # All others can end: a receiver that starts, that gets its rights, or a call that `close` has ended.
            raise (EventsRefused if code.name in _FINAL else Unavailable)(text) from None
        except ValueError as closed:
            raise Unavailable(str(closed)) from None

    def close(self) -> None:
        """End a call that is running, too."""
        self._channel.close()


def fields(event: HealthEvent, node: str) -> Mapping[str, Any]:
    """The fields of the message, except its time."""
    return {
        "version": 1,
        "agent": AGENT,
        "componentClass": event.component,
        "checkName": event.check,
        "isFatal": event.fatal,
        "isHealthy": event.healthy,
        "message": event.message,
        "recommendedAction": event.action,
        "errorCode": [event.code],
        "entitiesImpacted": [{"entityType": kind, "entityValue": value} for kind, value in event.entities],
        "metadata": event.metadata,
        "nodeName": node,
        "processingStrategy": _REMEDIATE if event.remediate else _STORE_ONLY,
    }
