"""Programs written for JAX, and their jaxprs as they were recorded, for machines without JAX."""
