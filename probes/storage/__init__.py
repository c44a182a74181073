"""Sources for disks, arrays and mounts."""
