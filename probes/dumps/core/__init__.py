"""Functions that all dump readers use: splitting of files, frames around lines, matrices, citations."""
