"""Sources of facts (this machine, a recorded machine, dumps), and active measurements."""
