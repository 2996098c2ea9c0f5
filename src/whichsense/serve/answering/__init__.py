"""How questions are answered: what answers, the queue before it, answers that run."""
