"""HTML pages that show files, schedules, plans and machines."""

from unisono.viewing.subjects import view

__all__ = ["view"]
