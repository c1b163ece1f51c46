"""What people see while a fit runs and after it: progress, screens, the report."""
