"""The work of the subcommands of `oldgrowth`, one module each; cli.py reads their options."""
