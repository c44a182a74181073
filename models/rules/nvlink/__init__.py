"""Rules about NVLinks, NVSwitches, fabric managers and peer access."""
