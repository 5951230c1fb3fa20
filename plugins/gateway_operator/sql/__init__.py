"""The SQL of operators' queries and writes, a module per group of tables."""
