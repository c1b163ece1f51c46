"""Fits on several machines: the stages of `fitting`, on partitions of the rows and ranges of buckets."""
