"""linkgauge: how fast each link of a GPU node should be, how fast it is, and which hop is at fault."""

__version__ = "0.1.0"
