"""The merge step of an application with a processor: PySpark's `StatefulProcessor` within the rules of the pipeline.

`step` is the step on DataFrames; `adapter` runs the processor in Spark's Python workers; `variables` are its state
variables, which it can take back; `stored` is what the pipeline itself stores with each window.
"""
