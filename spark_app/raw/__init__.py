"""Raw sources: each has a job of its own, whose query decodes raw records and writes their events to the topic."""
