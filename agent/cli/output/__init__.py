"""Shared parts of commands: create a report, show progress, write output, exit codes."""
