"""C++ programs with annotated loops, built with and without their views."""
