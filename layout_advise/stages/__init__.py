"""The stages of the road, one file each; ``layout_advise.pipeline`` strings them together."""
