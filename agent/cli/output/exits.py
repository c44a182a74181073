"""The exit codes of the program."""

EXIT = {"ok": 0, "degraded": 1, "failed": 2, "unknown": 3}
BAD_INPUT, OUR_BUG = 64, 70  # EX_USAGE and EX_SOFTWARE of sysexits.h
INTERRUPTED, READER_LEFT = 130, 141  # as shells report an end by SIGINT and SIGPIPE
