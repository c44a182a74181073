"""The program: the command line, the service, and the pipeline from sources to a report."""
