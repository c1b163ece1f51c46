"""`python -m oldgrowth` is the command `oldgrowth`."""

from .cli.main import main

main()
