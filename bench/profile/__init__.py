"""Profiles the job's CPU by samples of all threads: frames of Java and of native code."""
