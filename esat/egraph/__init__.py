"""The e-graph layer: encoding, the compiled rules, saturation. The only importer of egglog."""
