"""A report, a topology or a plan in formats of programs: JSON, XML, TOML, DOT, pandas."""
