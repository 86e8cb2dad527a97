"""The Spark job: (events + feedback) → decode → lift → merge → snapshots, in native expressions end to end."""
