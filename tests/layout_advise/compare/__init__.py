"""Two runs held against each other, and a changed program recognised."""
