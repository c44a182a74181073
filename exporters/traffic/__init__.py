"""The traffic of links as tables and as JSON, for `linkgauge top`."""
