"""Switches of a network, from the files and outputs of other tools."""
