"""From a chunk of a waveform to the blob that shows it, while that is still being built."""
