"""Tables, charts and pages."""
