"""The collectives of a running job: what its ranks recorded, and which link or rank it shows to be slow."""
