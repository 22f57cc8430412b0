"""The paper's experiments: a folder for each figure or table; tables first, figures from tables."""
