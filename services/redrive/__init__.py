"""Brings dead letters back into the loop, when what had refused them is mended."""
