"""Measures jobs that do the same, one beside the other, and checks every answer that they give."""
