"""Earlier name of ClusterSpec, for programs that use the Python interface of `linkgauge plan`."""

from .cluster_spec import ClusterSpec as Where

__all__ = ["Where"]
