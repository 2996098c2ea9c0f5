"""The human evaluation of readings: a form is drawn, people fill it in, and their marks become a table."""
