"""Programs and reports before and after a change of layout."""
