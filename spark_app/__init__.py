"""The Spark job: (events + feedback) → decode → lift → merge → snapshots, in native expressions end to end.

`main` starts it. A package imports only those below it in this list:

- `raw` decodes raw sources, and `lifecycle` builds, copies and archives states while their jobs run;
- `run` keeps the queries of a job running;
- `checkpoint` is the folder in which a job continues;
- `query` declares what Spark computes, and `topics` reads what the broker knows of the topics.
"""
