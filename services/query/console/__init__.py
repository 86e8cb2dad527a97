"""The web page about the loop, and the JSON that it draws."""
