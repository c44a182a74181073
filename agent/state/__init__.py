"""Files of the state folder: acceptance and status."""
