"""Certified optimal labels by branch and bound and cutting planes."""
