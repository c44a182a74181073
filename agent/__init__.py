"""The program: what is asked when, on the command line and in the daemon."""
