"""A report or a topology as text for a terminal."""
