"""The memory as an HTTP service: docs/service.md. Needs the extra ``server``."""
