"""What ``doctor`` finds out, beyond which programs there are."""
