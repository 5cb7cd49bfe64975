"""What all packages use: files, checks of input, values in messages, limits, interrupts and facts of collectives."""

__all__ = ["border", "facts", "files", "inputs", "interrupts", "lazy", "letters", "limits", "messages"]
