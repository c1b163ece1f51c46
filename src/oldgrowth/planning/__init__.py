"""What a fit will do and what it will take: the planner, the memory model, the execution plan."""
