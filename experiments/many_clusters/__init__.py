"""More than two clusters: the estimator compared with k-means and a Gaussian mixture."""
