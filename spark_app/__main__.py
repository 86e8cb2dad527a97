"""`stateloop job` runs the job."""

import sys

from spark_app.main import main

sys.exit(main())
