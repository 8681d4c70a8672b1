"""Adapters that run other packages' clients on Mimus."""
