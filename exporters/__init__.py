"""Output formats of a report, a topology or a plan, for people and programs."""
