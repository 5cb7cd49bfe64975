"""Pictures: of networks, of results (`plots`), and of programs of tasks (`graphs`)."""

import logging

__all__: list[str] = []

# Otherwise, on a new or busy computer, matplotlib would print a line about its cache of fonts to standard error.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
