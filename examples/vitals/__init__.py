"""Vital signs: pulse waveforms of patients, in chunks of a second, as blobs of ten seconds and coverage by the hour."""
