"""``python -m layout_advise``."""

import sys

from layout_advise.cli import main

sys.exit(main())
