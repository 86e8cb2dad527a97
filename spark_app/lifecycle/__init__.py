"""Operations on a state, behind the commands of an operator: build, copy, export and archive.

`rebuild` builds a generation while the job runs, and `handover` measures the change; `bootstrap` builds the first one
of events in files (`history`, `history_writer`). `savepoint` copies a checkpoint's last commit, `export` reads its
rows, and `published_state` compares them with snapshots. `archive` writes snapshots as Parquet.
"""
