"""Pages that show files, schedules, plans and machines in a browser."""

from unisono.viewing.subjects import view

__all__ = ["view"]
