"""Files of the state folder: acceptance, status, inventory, history."""
