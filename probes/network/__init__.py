"""Sources about network and RDMA devices."""
