"""Long work: progress, stopping, worker processes, and parts that are kept on disk and resumed."""
