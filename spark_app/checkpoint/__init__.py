"""A checkpoint: the folder with the state of one job, and the files that protect it.

`folder` reads and writes files on any file system. A job claims a checkpoint by `identity`, and has its `lease` while
it runs: `owner` names the job, `keeper` renews the lease, and `fence` stops the rows of a job whose lease has ended.
`generations` are the states that were built for the checkpoint. `commit_log` and `commit_files` read what Spark stores;
`unpublished_windows` and `republish` store what the next job must know.
"""
