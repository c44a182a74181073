"""Outputs of tools as people paste them: framed, reformatted, in pieces, damaged. __main__.py has the benchmark."""
