"""Commands that show what links should give, and what a training should take."""
