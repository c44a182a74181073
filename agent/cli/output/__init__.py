"""What every command does around its result: load a report, show progress, write, exit."""
