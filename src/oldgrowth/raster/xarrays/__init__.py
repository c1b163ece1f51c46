"""Maps of xarray's arrays."""
