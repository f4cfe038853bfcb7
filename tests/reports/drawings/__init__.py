"""The drawings of the page, from data as a run has them and as a damaged file may."""
