"""The rule type and what all rules share."""
