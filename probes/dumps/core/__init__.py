"""What all dump readers share: splitting, frames, matrices, citations."""
