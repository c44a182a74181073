"""From findings to a verdict: attribution, localization, coverage, hysteresis, impact."""
