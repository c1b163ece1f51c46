"""`python -m oldgrowth` is the command `oldgrowth`."""

from .cli.entry import main

main()
