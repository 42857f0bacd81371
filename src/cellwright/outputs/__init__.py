"""What a cell prints, shows and raises: collected, bounded, chosen, described."""
