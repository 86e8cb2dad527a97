"""Raw sources: how many chunks of a waveform the job decodes, and for how much CPU."""
