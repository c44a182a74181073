"""Limits of tests that run probes on the machine of the tests."""

# Seconds until a probe counts as hung. A probe that takes two seconds alone takes minutes beside ten busy processes.
LONGEST = 600.0
