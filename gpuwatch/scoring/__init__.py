"""The diagnosis against scenarios that say what is right: labels, draws, measures, tables."""
