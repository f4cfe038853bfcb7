"""What ``show`` prints and writes of a folded trace.

``show_rows`` names what each reference touched.
``show_files`` writes the same as a table: CSV or Parquet.
"""
