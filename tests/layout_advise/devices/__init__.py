"""Tests of the plan over machines: from reports of runs on each."""
