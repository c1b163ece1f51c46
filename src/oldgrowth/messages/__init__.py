"""Text that people read: the log, warnings, numbers with units, and names of parameters or options."""
