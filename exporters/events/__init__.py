"""Findings as events for systems that quarantine nodes."""
