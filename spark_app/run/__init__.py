"""A running job: it starts the query of each application, restarts it, and reports how far it is.

`application_job` is the main path of one application, and `applications` runs several. `start` chooses the mode of a
run by its `backlog`, and `supervise` follows and repeats it. `low_watermark`, `heartbeat` and `published_progress`
find and publish how far a query is; `metrics`, `lag` and `report` report it. `session` has the settings of Spark.
"""
