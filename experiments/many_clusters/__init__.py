"""More than two clusters: both strategies of the estimator compared with k-means and a Gaussian mixture."""
