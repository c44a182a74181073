"""A report or a topology as JSON, HTML, XML, TOML, tables and charts."""
