"""Collectives, rooflines and layouts: what a link costs a training job."""
