"""What our promises cost: `./dev bench`."""
