"""The merge step of an application with a processor: PySpark's `StatefulProcessor` within the rules of the pipeline.

`step` is the step on DataFrames; `adapter` runs the processor in Spark's Python workers; `variables` are its state
variables, whose writes it can revert; `stored` has the fields that the pipeline stores with each window.
"""
