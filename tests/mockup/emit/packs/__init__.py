"""Operations of several lanes and comparisons of many bytes, written as vector statements."""
