"""The rule type and functions that all rules share."""
