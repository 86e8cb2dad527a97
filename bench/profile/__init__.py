"""Where the job's CPU goes, by samples of all threads: Java's frames and those of native code."""
