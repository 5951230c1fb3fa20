"""The SQL of what operators read and do: one module for each group of tables."""
