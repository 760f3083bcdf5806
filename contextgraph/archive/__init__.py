"""A memory as a file of JSON lines: written from any store, read into any store."""

from contextgraph.archive.exporting import Exported, export_memory
from contextgraph.archive.importing import Imported, count_runs, import_memory

__all__ = ["Exported", "Imported", "count_runs", "export_memory", "import_memory"]
