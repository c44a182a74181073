"""Sources for network and RDMA devices."""
