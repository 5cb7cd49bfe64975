"""Pictures: of networks, of results (`plots`), and of programs of tasks (`graphs`)."""

__all__: list[str] = []
