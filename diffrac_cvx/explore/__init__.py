"""The interactive page: data, parameters, solvers and pictures, in the browser or from a notebook."""
