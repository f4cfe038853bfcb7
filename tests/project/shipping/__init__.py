"""What users get: the wheel, the image, the documented commands, the tool beside root."""
