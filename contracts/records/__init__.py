"""Records of the topics: strict reading, reasons of refusal, the fold of deltas, JSON Schema."""
