"""Readers of file formats: JSON lines, tables, Parquet, HTML, documents."""
