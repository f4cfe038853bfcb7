"""Layouts written in other languages, compiled and run where the compiler is at hand."""
