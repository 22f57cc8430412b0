"""The paper's experiments: one module per figure, tables first, pictures from tables."""
