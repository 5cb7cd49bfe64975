"""The lowest layer: files, checks of input, messages, limits, interrupts, facts and the types of reports."""

__all__ = ["border", "facts", "files", "inputs", "interrupts", "lazy", "letters", "limits", "messages", "reports"]
