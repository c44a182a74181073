"""A report, a topology or a plan as text for a terminal."""
