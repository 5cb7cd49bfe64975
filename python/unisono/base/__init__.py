"""What all packages use: files, checks of input, values in messages, limits and interrupts."""

__all__ = ["border", "files", "inputs", "interrupts", "lazy", "letters", "limits", "messages", "reports"]
