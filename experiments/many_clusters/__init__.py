"""More than two clusters: the two ways of the estimator beside k-means and a Gaussian mixture."""
