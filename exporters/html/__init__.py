"""Pages for a browser: the front page of the service, and a report in one file."""
