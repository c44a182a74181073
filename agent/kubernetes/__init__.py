"""What the service tells the API of a Kubernetes cluster about its node."""
