"""A report as metrics: Prometheus text and OTLP."""
