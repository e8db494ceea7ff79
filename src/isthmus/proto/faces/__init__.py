"""The color service of the Faces demo."""
