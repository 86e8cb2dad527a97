"""Coverage with a resolution of a second: how fast it is answered, and what it costs the job."""
