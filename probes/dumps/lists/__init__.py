"""Lists of devices in any layout: tables, JSON and blocks of lines, whatever program wrote them."""
