"""Names of the counters that count bytes, and of those that count errors."""

from __future__ import annotations

from collections.abc import Mapping

TRAFFIC: Mapping[str, str] = {
    "port_rcv_data": "receive",
    "port_xmit_data": "transmit",
    "rx_bytes": "receive",
    "tx_bytes": "transmit",
    "nvlink_rx_bytes": "receive",
    "nvlink_tx_bytes": "transmit",
}
# Names as in the kernel (sysfs) and NVML. Counters of a busy network or a slow receiver (congestion) are not errors.
ERRORS = frozenset(
    {
        "aer_correctable",
        "aer_nonfatal",
        "aer_fatal",
        "pcie_replay",
        "nvlink_replay",
        "nvlink_recovery",
        "nvlink_recovery_failed",
        "nvlink_crc",
        "nvlink_symbol_errors",
        "nvlink_effective_errors",
        "link_downed",
        "link_error_recovery",
        "local_link_integrity_errors",
        "excessive_buffer_overrun_errors",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
        "port_xmit_discards",
        "symbol_error",
        "local_ack_timeout_err",
        "out_of_sequence",
        "packet_seq_err",
        "rx_icrc_encapsulated",
        "carrier_changes",
        "rx_errors",
        "tx_errors",
        "rx_crc_errors",
        "rx_drops",
    }
)
