"""What people and programs put around the lines of an output: prefixes, quotes, markup, wrapping. No reader is here."""
