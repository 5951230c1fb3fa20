"""What an operator decides. Each function writes its audit row in the write of the decision."""
