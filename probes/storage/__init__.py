"""Sources about disks, arrays and mounts."""
