"""Outputs of perftest."""

from __future__ import annotations

RULE = "-" * 87
RATES = " #bytes     #iterations    BW peak[{0}]    BW average[{0}]   MsgRate[Mpps]"
LATENCIES = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec] "
)
ROW = " 65536      5000             392.10             391.85             0.747391"


def output(title: str, heading: str, *rows: str, device: str = "mlx5_3") -> str:
    return (
        "\n".join(
            (
                RULE,
                f"                    {title}",
                f" Dual-port       : OFF\t\tDevice         : {device}",
                " Number of qps   : 1\t\tTransport type : IB",
                " Mtu             : 4096[B]",
                " Link type       : IB",
                RULE,
                " local address: LID 0x11 QPN 0x0127 PSN 0x1",
                " remote address: LID 0x12 QPN 0x0127 PSN 0x2",
                RULE,
                heading,
                "Conflicting CPU frequency values detected: 800.0 != 3400.0. CPU Frequency is not max.",
                *rows,
                RULE,
            )
        )
        + "\n"
    )
