"""`python -m unisono` is the program `unisono`."""

import sys

from unisono.cli import main

sys.exit(main())
