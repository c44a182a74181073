"""Devices and links as a graph: routes, path types, max-min fair shares."""
