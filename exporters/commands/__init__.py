"""The output of one command each: its text, JSON and CSV."""
