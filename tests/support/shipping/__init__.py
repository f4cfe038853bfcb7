"""What is made of the tool itself and shipped: the pages of the reference, the recorded run of the demo."""
