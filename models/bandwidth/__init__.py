"""The expected bandwidth of links and flows, and whether a measurement is plausible."""
