"""Tokens that are redeemed at most once."""
