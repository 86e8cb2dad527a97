"""`stateloop job` runs the job."""

import sys

from services.runtime.command_line import run
from spark_app.main import main

sys.exit(run("job", main))
