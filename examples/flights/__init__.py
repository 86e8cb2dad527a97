"""The flights that left New York in 2013: one device is one flight."""
