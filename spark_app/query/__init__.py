"""The query of an application: what Spark computes from the records of its topics.

`pipeline` is the whole query. `lift` makes deltas of records, with `decode` and `checks`. `merge` makes states of
deltas; the class of an application with a `processor` does so instead. `columns` has the names between these steps,
`state_model` what the stored state depends on, `observations` the counts of each batch, and `kafka` the options of
Spark's Kafka client.
"""
