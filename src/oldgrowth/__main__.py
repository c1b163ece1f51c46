"""`python -m oldgrowth` is the command `oldgrowth`."""

from .cli import main

main()
