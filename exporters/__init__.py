"""A report in the forms that people and programs read. They see nothing but the report."""
