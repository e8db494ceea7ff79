"""The lab's own process; `isthmus lab up` starts it."""

import sys

from isthmus.lab.starter import inside

sys.exit(inside(sys.argv[1:]))
