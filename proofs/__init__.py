"""Comparison of the proved checker of certificates with Unisono's own verdicts; see `docs/proofs.md`."""
