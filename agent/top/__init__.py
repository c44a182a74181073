"""`linkgauge top`: readings of this machine or of a service, and the screen."""
